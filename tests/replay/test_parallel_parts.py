"""Several processes replay one capture together, with one merged report."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from cluster.mock.embedded_broker import EmbeddedBroker
from dissector.cli import main
from dissector.protocol.apis import KEYS
from replay import Plan, Report, replay, replay_async
from replay.report.merged_report import merge_reports
from replay.report.report import write_report
from tests.default_frames import request, response, sized
from tests.replay.support.produce_messages import Written, produce_request, produce_response
from tests.replay.support.replay_captures import SHIPPED, exchange, saved
from tests.tcp_captures import Wire
from tests.waiting import PATIENCE_S

TOPIC, RECORDS, WRITES = "orders", 5, 12
COUNTS = ("captured", "sent", "left_out", "never_reached", "requests_sent", "missing", "differs")
_PRODUCE, _FETCH = 9, 11


def _capture(folder: Path) -> str:
    """Two clients write to one log in turn, and a third reads it."""
    wire, log = Wire(), []
    writers = [wire.connect(50000 + number).syn() for number in range(2)]
    for number in range(WRITES):
        values = [b"%d %d" % (number, at) for at in range(RECORDS)]
        batch, offset = Written(TOPIC, 0, values), number * RECORDS
        log.append(offset.to_bytes(8, "big") + batch.records()[8:])
        answer = {"log_append_time_ms": -1, "log_start_offset": 0}
        exchange(
            writers[number % 2],
            sized(produce_request(_PRODUCE, [batch], number + 2, timeout_ms=5000)),
            sized(produce_response(_PRODUCE, [(TOPIC, 0, offset)], number + 2, **answer)),
        )
    _read(wire, log)
    return saved(folder, wire)


def _read(wire: Wire, log: list[bytes]) -> None:
    reader, key, end = wire.connect(50009).syn(), KEYS["Fetch"], len(log) * RECORDS
    for number, batch in enumerate(log):
        position = {
            "partition": 0,
            "current_leader_epoch": -1,
            "fetch_offset": number * RECORDS,
            "log_start_offset": -1,
            "partition_max_bytes": 1 << 20,
        }
        asked = {
            "replica_id": -1,
            "max_wait_ms": 100,
            "min_bytes": 1,
            "max_bytes": 1 << 20,
            "session_epoch": -1,
            "topics": [{"topic": TOPIC, "partitions": [position]}],
        }
        returned = {
            "partition_index": 0,
            "error_code": 0,
            "high_watermark": end,
            "last_stable_offset": end,
            "log_start_offset": 0,
            "aborted_transactions": [],
            "preferred_read_replica": -1,
            "records": batch,
        }
        answer = {"responses": [{"topic": TOPIC, "partitions": [returned]}]}
        exchange(
            reader,
            request(key, _FETCH, number + 2, **asked),
            response(key, _FETCH, number + 2, **answer),
        )


def _played(capture: str, count: int, folder: Path) -> tuple[Report, list[Report]]:
    """Replay all parts concurrently; return the merged report and those of the parts."""

    async def play(plans: list[Plan], address: str) -> list[Report]:
        return await asyncio.gather(
            *(replay_async(plan, address, timeout_s=PATIENCE_S) for plan in plans)
        )

    plans = [Plan.of(capture, part=f"{number}/{count}") for number in range(1, count + 1)]
    with EmbeddedBroker(1, {TOPIC: 1}) as embedded:
        reports = asyncio.run(play(plans, ",".join(embedded.addresses)))
    files = [folder / f"{number}.ndjson" for number in range(count)]
    for report, file in zip(reports, files, strict=True):
        write_report(report, file)
    for plan in plans:
        plan.close()
    return merge_reports(files), reports


@pytest.mark.thinned(2)
@pytest.mark.parametrize("count", [2, 3])
def test_merged_parts_have_the_counts_of_the_whole(tmp_path: Path, count: int) -> None:
    capture = _capture(tmp_path)
    with Plan.of(capture) as plan, EmbeddedBroker(1, {TOPIC: 1}) as embedded:
        whole = replay(plan, ",".join(embedded.addresses), timeout_s=PATIENCE_S)
    merged, parts = _played(capture, count, tmp_path)
    assert whole.passed, str(whole)
    assert merged.passed, str(merged)
    for name in COUNTS:
        assert merged.summary()[name] == whole.summary()[name], name
    assert [row["api"] for row in merged.api_rows()] == [row["api"] for row in whole.api_rows()]
    assert sum(len(report.plan) for report in parts) == len(whole.plan)  # type: ignore[attr-defined]
    connections = {row["connection"] for row in merged.connection_rows()}
    assert connections == {row["connection"] for row in whole.connection_rows()}
    assert not merged.unbalanced_rows()
    assert not merged.failing


def test_a_log_of_several_parts_is_balanced_in_the_merged_report(tmp_path: Path) -> None:
    merged, parts = _played(_capture(tmp_path), 3, tmp_path)
    assert sorted(len(report.shared_logs) for report in parts) == [0, 1, 1]
    assert "Logs that other parts write to" in "\n".join(map(str, parts))
    assert not merged.shared_logs
    assert not merged.unbalanced_rows()


def test_a_missing_part_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _played(_capture(tmp_path), 3, tmp_path)
    files = [str(tmp_path / f"{number}.ndjson") for number in (0, 2)]
    assert main(["replay", "--merge", *files]) == 2
    out, err = capsys.readouterr()
    assert "no report of part 2/3" in out
    assert "no report of part 2/3" in err
    two = str(tmp_path / "two.ndjson")
    assert main(["replay", "--merge", *files, "--report", two]) == 2
    assert main(["replay", "--merge", two, str(tmp_path / "1.ndjson")]) == 0


def test_a_part_without_requests_passes(capsys: pytest.CaptureFixture[str]) -> None:
    capture = str(SHIPPED / "librdkafka-idempotent.pcap")
    arguments = ("--to", "mock", "--speed", "max", "--part", "9/9")
    assert main(["replay", capture, *arguments]) == 0
    assert "0 captured, 0 sent" in capsys.readouterr().out
