"""Differences that no client sees are equivalent; others stay."""

from __future__ import annotations

from pathlib import Path

import pytest

from dissector.errors import UsageError
from replay import Plan, replay
from replay.cli import ReplayOptions
from replay.compare.client_readings import CLIENTS, READ_ALIKE, ClientReadings, checked_clients
from replay.compare.step_verdict import compare_outcome
from replay.mapping.id_map import IdMap
from replay.model.outcome import Reason, Verdict
from tests.replay.support.kfake import kfake
from tests.replay.support.outcomes import outcome
from tests.waiting import PATIENCE_S

CAPTURES = Path(__file__).parents[3] / "captures"
ON_KFAKE = (
    "kafka4-librdkafka-group-848",
    "kafka4-librdkafka-transactions",
    "kafka44-java-clients",
    "kafka4-librdkafka-group",
)


def _fetched(aborted: list[dict[str, int]] | None) -> dict[str, object]:
    partition = {"partition_index": 0, "aborted_transactions": aborted, "records": None}
    return {"responses": [{"topic": "orders", "partitions": [partition]}]}


def _committed(metadata: str | None) -> dict[str, object]:
    partition = {"partition_index": 0, "committed_offset": 3, "metadata": metadata}
    topics = [{"name": "orders", "partitions": [partition]}]
    return {"groups": [{"group_id": "g", "topics": topics}]}


ABORTED = [{"producer_id": 1, "first_offset": 4}]


@pytest.mark.parametrize(
    ("api", "version", "captured", "live", "verdict"),
    [
        ("Fetch", 11, _fetched([]), _fetched(None), Verdict.EQUIVALENT),
        ("Fetch", 11, _fetched(None), _fetched([]), Verdict.EQUIVALENT),
        ("Fetch", 11, _fetched(ABORTED), _fetched(None), Verdict.DIFFERS),
        ("Fetch", 11, _fetched(ABORTED), _fetched([]), Verdict.DIFFERS),
        ("OffsetFetch", 8, _committed(""), _committed(None), Verdict.EQUIVALENT),
        ("OffsetFetch", 8, _committed("mine"), _committed(None), Verdict.DIFFERS),
        (
            "SyncGroup",
            5,
            {"protocol_name": None},
            {"protocol_name": ""},
            Verdict.DIFFERS,
        ),
    ],
)
def test_only_what_clients_read_alike_is_equivalent(
    api: str, version: int, captured: dict[str, object], live: dict[str, object], verdict: Verdict
) -> None:
    made = outcome(api, version, captured, live)
    assert compare_outcome(made, IdMap())[0] is verdict
    assert (Reason.READ_ALIKE in made.reasons) is (verdict is Verdict.EQUIVALENT)


def test_an_older_release_reads_otherwise() -> None:
    def verdict(software: str, *clients: str) -> Verdict:
        made = outcome("OffsetFetch", 8, _committed(""), _committed(None))
        readings = ClientReadings(clients, {made.step.captured.connection: software})
        return compare_outcome(made, IdMap(), readings=readings)[0]

    assert verdict("sarama v1.46.1") is Verdict.DIFFERS
    assert verdict("sarama v1.46.3") is verdict("sarama v1.61.1") is Verdict.EQUIVALENT
    assert verdict("sarama v1.46.1", "java") is Verdict.EQUIVALENT
    assert verdict("confluent-kafka-python 2.16.1-rdkafka-2.16.0") is Verdict.EQUIVALENT


def test_clients_are_those_of_the_table() -> None:
    assert all(set(readings) == set(CLIENTS) for readings in READ_ALIKE.values())
    assert ReplayOptions.declared()["clients"].choices == CLIENTS
    assert checked_clients(["Java", "sarama", "java"]) == ("java", "sarama")
    with pytest.raises(UsageError, match="--for takes java, librdkafka, franz-go, sarama, not 'x'"):
        checked_clients(["x"])


def test_only_the_heartbeat_interval_of_kfake_differs() -> None:
    equivalent, differing = 0, list[str]()
    for name in ON_KFAKE:
        with (
            kfake() as address,
            Plan.of(CAPTURES / f"{name}.pcap", filter="api != ApiVersions") as plan,
        ):
            report = replay(plan, address, create_topics=True, timeout_s=PATIENCE_S)
        counts = {row["reason"]: row["count"] for row in report.reason_rows()}
        equivalent += counts.get(Reason.READ_ALIKE, 0)
        differing += [row["field"] for row in report.field_rows() for _ in range(row["count"])]
    assert differing == ["ConsumerGroupHeartbeat.heartbeat_interval_ms"] * 3
    assert equivalent > 40
