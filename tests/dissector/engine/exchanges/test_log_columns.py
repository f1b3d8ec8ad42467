"""What a request log says of exchanges: columns, filters, objects, and what it can't say."""

from __future__ import annotations

from pathlib import Path

import pytest

from conform import conform
from dissector.engine.exchanges.log_columns import ACCOUNT_COLUMNS
from dissector.public import open_capture
from tests.corpus import FOLDER
from tests.dissector.request_log.log_samples import exchange, line

LOGS = sorted(FOLDER.glob("*request-log*"))


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.name)
def test_columns_equal_those_of_objects(path: Path) -> None:
    capture = open_capture(path)
    rows = [each.row() for each in capture]
    assert capture.exchanges().to_dicts() == rows
    assert all(row["request_bytes"] is row["network_ms"] is None for row in rows)
    parts = ("queue_ms", "local_ms", "remote_ms", "throttle_ms", "response_queue_ms", "send_ms")
    for row in rows:
        assert row["broker_ms"] == row["latency_ms"]
        assert sum(row[part] for part in parts) <= row["broker_ms"] + 1


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.name)
def test_no_rule_accuses_a_broker_by_its_log(path: Path) -> None:
    verdict = conform(path)
    assert not verdict.kinds, str(verdict)
    assert not verdict.faults


def test_filters_on_the_account() -> None:
    text = "".join(
        line(exchange(correlation_id=number, remoteTimeMs=10.0 * number, principal=f"User:{name}"))
        for number, name in enumerate(("alice", "bob", "carol"))
    )
    chosen = "remote_ms >= 10 and principal contains 'o' and client_software contains librdkafka"
    found = open_capture(text.encode(), filter=chosen)
    assert [each.correlation_id for each in found] == [1, 2]


def test_logs_beside_captures(tmp_path: Path) -> None:
    """Each exchange has the account of its own line; those of captures have none."""
    logs = []
    for broker in (1, 2):
        path = tmp_path / f"{broker}.log"
        connection = f"10.0.0.{broker}:9092-10.0.0.9:5000-0-1"
        path.write_text(
            "".join(
                line(
                    exchange(
                        correlation_id=number,
                        connection=connection,
                        requestQueueTimeMs=100 * broker + number,
                        listener=f"LISTENER-{broker}",
                    ),
                    f"2026-11-26 17:24:{number:02},000",
                )
                for number in range(1, 9)
            )
        )
        logs.append(str(path))
    rows = open_capture([*logs, FOLDER / "librdkafka-acks.pcap"]).exchanges().to_dicts()
    for row in rows:
        if row["capture"] in logs:
            broker = int(row["broker"].split(":")[0][-1])
            assert row["queue_ms"] == 100 * broker + row["correlation_id"]
            assert row["listener"] == f"LISTENER-{broker}"
            assert row["request_bytes"] is None
        else:
            assert [row[name] for name in ACCOUNT_COLUMNS] == [None] * len(ACCOUNT_COLUMNS)
            assert row["request_bytes"] or row["response_bytes"]
    assert sum(row["capture"] in logs for row in rows) == 16


def test_sizes_of_records() -> None:
    request = {
        "transactionalId": None,
        "acks": -1,
        "timeoutMs": 5000,
        "topicData": [
            {
                "name": "orders",
                "partitionData": [
                    {"index": 0, "recordsSizeInBytes": 167},
                    {"index": 1, "recordsSizeInBytes": 90},
                ],
            }
        ],
    }
    value = exchange(key=0, name="PRODUCE", version=3, request=request, response="")
    (found,) = open_capture(line(value).encode())
    assert found.logged_record_bytes == [167, 90]
    assert found.request is not None
    assert not found.problems
