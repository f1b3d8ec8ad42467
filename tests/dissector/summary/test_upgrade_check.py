"""Clients and requests that break with another release."""

from __future__ import annotations

from typing import Any

import pytest

from dissector import open_capture
from dissector.summary.software_guess import guess_software
from dissector.summary.upgrade_check import (
    BREAKS,
    NEGOTIATES,
    UNKNOWN,
    UNUSED,
    UpgradeReport,
    check_brokers,
    check_clients,
)
from dissector.summary.version_offers import VersionOffers

FETCH = 1
BROKER = "10.0.0.2:9092"


def use(api: str, version: int | None, **values: Any) -> dict[str, Any]:
    row = {
        "client_id": "shop",
        "client": "10.0.0.1",
        "software_name": None,
        "software_version": None,
        "broker": BROKER,
        "api": api,
        "api_version": version,
        "count": 1,
    }
    return row | values


def offers(
    ranges: dict[str, dict[int, tuple[int, int]]] | None = None, *, asks: bool = True
) -> VersionOffers:
    """Return the offers seen in ApiVersions, with or without requests of the client."""
    found = VersionOffers(open_capture())
    found.offers = ranges or {}
    found.requesters = {("shop", "10.0.0.1")} if asks else set()
    return found


def verdicts(report: UpgradeReport) -> dict[tuple[str, int], str]:
    return {(row["api"], row["api_version"]): row["verdict"] for row in report.rows}


def test_a_client_without_api_versions_breaks() -> None:
    report = check_clients(
        [use("Fetch", 2, count=3), use("Metadata", 1)], offers(asks=False), "4.4"
    )
    assert report.rows == [
        {
            "client_id": "shop",
            "client": "10.0.0.1",
            "software": None,
            "api": "Fetch",
            "api_version": 2,
            "count": 3,
            "spoken": "v4-18",
            "removed_in": "4.0",
            "kips": ["KIP-896", "KIP-724"],
            "verdict": BREAKS,
        }
    ]
    assert (report.subjects, report.broken) == (1, 1)


def test_a_negotiating_client_breaks_below_the_offered_versions() -> None:
    uses = [use("ApiVersions", 2), use("Fetch", 2)]
    known = offers({BROKER: {FETCH: (0, 17)}})
    assert verdicts(check_clients(uses, known, "4.4")) == {("Fetch", 2): BREAKS}


def test_a_client_may_have_newer_versions_than_an_old_broker() -> None:
    uses = [use("ApiVersions", 0), use("Fetch", 3)]
    report = check_clients(uses, offers({BROKER: {FETCH: (0, 3)}}), "4.4")
    assert verdicts(report) == {("Fetch", 3): NEGOTIATES}
    assert report.broken == 0


def test_one_broker_with_evidence_is_enough() -> None:
    other = "10.0.0.3:9092"
    uses = [use("ApiVersions", 0), use("Fetch", 3), use("Fetch", 3, broker=other)]
    known = offers({BROKER: {FETCH: (0, 3)}, other: {FETCH: (0, 17)}})
    (row,) = check_clients(uses, known, "4.4").rows
    assert (row["verdict"], row["count"]) == (BREAKS, 2)


def test_an_older_release_lacks_new_versions() -> None:
    uses = [use("ApiVersions", 4), use("Fetch", 17), use("Produce", 9, client_id="fixed")]
    report = check_clients(uses, offers({BROKER: {FETCH: (4, 17)}}), "2.0")
    assert verdicts(report) == {("Fetch", 17): NEGOTIATES, ("Produce", 9): BREAKS}
    assert {row["removed_in"] for row in report.rows} == {None}


def test_an_api_missing_in_a_release_can_not_be_negotiated() -> None:
    """A KIP-848 consumer has no alternative protocol; telemetry is optional."""
    uses = [use("ConsumerGroupHeartbeat", 0), use("GetTelemetrySubscriptions", 0)]
    assert verdicts(check_clients(uses, offers(), "3.6")) == {
        ("ConsumerGroupHeartbeat", 0): BREAKS,
        ("GetTelemetrySubscriptions", 0): NEGOTIATES,
    }


def test_brokers_and_unknown_apis_are_not_judged() -> None:
    uses = [use("LeaderAndIsr", 0), use("unknown 999", 0), use("Fetch", None), use("SaslToken", 0)]
    assert check_clients(uses, offers(), "4.4") == UpgradeReport([], 0, 0)


def test_software_is_known_from_any_connection() -> None:
    named = {"software_name": "librdkafka", "software_version": "1.2"}
    uses = [use("ApiVersions", 3, **named), use("ListOffsets", 0)]
    (row,) = check_clients(uses, offers({BROKER: {2: (0, 9)}}), "4.4").rows
    assert row["software"] == "librdkafka 1.2"


@pytest.mark.parametrize(
    ("client_id", "software"),
    [
        ("rdkafka", "librdkafka (guess)"),
        ("kafka-python-2.0.2", "kafka-python 2.0.2 (guess)"),
        ("aiokafka-0.8.1", "aiokafka 0.8.1 (guess)"),
        ("consumer-billing-1", "Java client (guess)"),
        ("app@host (github.com/segmentio/kafka-go)", "kafka-go (guess)"),
        ("my-rdkafka", None),
        (None, None),
    ],
)
def test_a_guess_is_marked(client_id: str | None, software: str | None) -> None:
    assert guess_software(client_id) == software


def test_brokers_too_old_for_new_clients() -> None:
    """Source: KIP-896: clients of 4.0 need brokers of 2.1, where OffsetForLeaderEpoch has v2."""
    uses = [use("Fetch", 3, count=5), use("Fetch", 3, broker="10.0.0.9:9092")]
    known = offers({BROKER: {0: (0, 2), FETCH: (0, 3), 23: (0, 1), 2: (0, 1)}})
    report = check_brokers(uses, known, "4.0")
    assert [(row["api"], row["needed"], row["verdict"]) for row in report.rows] == [
        ("Fetch", "v4-17", BREAKS),
        (None, None, UNKNOWN),
        ("Produce", "v3-12", UNUSED),
        ("OffsetForLeaderEpoch", "v2-4", UNUSED),
    ]
    assert (report.subjects, report.broken) == (1, 1)


def test_brokers_as_clients_are_judged_on_demand() -> None:
    """A fetcher and KRaft have their client ids; a controller's channel has its APIs."""
    uses = [
        use("Fetch", 2),
        use("Fetch", 2, client_id="broker-3-fetcher-0"),
        use("Fetch", 2, client_id="raft-client-1"),
        use("BrokerHeartbeat", 0, client_id="1"),
        use("Fetch", 3, client_id="1"),
        use("WriteTxnMarkers", 0),
    ]
    known = offers(asks=False)
    report = check_clients(uses, known, "4.4")
    assert {row["client_id"] for row in report.rows} == {"shop"}
    assert (report.subjects, report.broken, report.internal) == (1, 1, 3)
    whole = check_clients(uses, known, "4.4", internal=True)
    assert {row["client_id"] for row in whole.rows} == {
        *("shop", "broker-3-fetcher-0", "raft-client-1", "1")
    }
    assert (whole.broken, whole.internal) == (4, 0)
