"""`kafkashark upgrade` on captures of real clients and brokers."""

from __future__ import annotations

from pathlib import Path

import pytest

from dissector import open_capture
from dissector.protocol.releases.kafka_releases import release_of
from dissector.summary.version_offers import VersionOffers
from tests.dissector.cli.conftest import Run

CAPTURES = Path(__file__).parents[4] / "captures"
OLD = CAPTURES / "kafka39-kafka-python-as-0.9.pcap"
NEW = CAPTURES / "kafka44-java-clients.pcap"
EARLY = CAPTURES / "kafka40-sweep-share.pcap"


def test_an_old_client_breaks(run: Run) -> None:
    done = run("upgrade", OLD, "--to", "4.4", "-T", "ndjson")
    assert done.status == 1
    assert done.err == "kafkashark: 4 of 4 clients break with Kafka 4.4\n"
    assert {(row["api"], row["api_version"], row["removed_in"]) for row in done.rows} == {
        ("Produce", 1, "4.0"),
        ("Fetch", 1, "4.0"),
        ("ListOffsets", 0, "4.0"),
    }
    (guessed,) = {row["software"] for row in done.rows if row["client_id"] == "kafka-python"}
    assert guessed == "kafka-python (guess)"
    assert run("upgrade", OLD, "--to", "3.9").status == 0


def test_a_new_client_does_not_break(run: Run) -> None:
    done = run("upgrade", NEW, "--to", "4.4.0", "-T", "ndjson")
    assert (done.status, done.out) == (0, "")
    assert run("upgrade", NEW, "--to", "4.4", "--clients", "-T", "csv").status == 0


def test_brokers_and_controllers_are_no_clients(run: Run) -> None:
    capture = CAPTURES / "kafka39-sweep-quorum.pcap"
    done = run("upgrade", capture, "--to", "4.4")
    assert (done.status, done.out) == (2, "")
    assert done.err == (
        "kafkashark: all clients are brokers or controllers, which --internal judges\n"
    )
    assert "clients break with" in run("upgrade", capture, "--to", "4.4", "--internal").err


def test_an_old_broker_is_too_old_for_new_clients(run: Run) -> None:
    done = run("upgrade", EARLY, "--to", "4.4", "--clients", "-T", "ndjson")
    assert done.status == 1
    assert {(row["software"], row["offered"], row["kips"][0]) for row in done.rows} == {
        ("Kafka 4.0", "v0", "KIP-932")
    }
    # Its client offers no newer versions than the broker.
    clients = run("upgrade", EARLY, "--to", "4.4", "-T", "ndjson")
    assert (clients.status, {row["verdict"] for row in clients.rows}) == (0, {"negotiates"})
    # A filter hides no evidence.
    some = run("upgrade", EARLY, "--to", "4.4", "-T", "ndjson", "-Y", "api == ShareFetch")
    assert (some.status, [row["verdict"] for row in some.rows]) == (0, ["negotiates"])


def test_a_capture_without_evidence_fails(run: Run) -> None:
    done = run("upgrade", OLD, "--to", "4.4", "--clients")
    assert done.status == 2
    assert done.err.endswith("the capture has no ApiVersions responses\n")
    none = run("upgrade", OLD, "--to", "4.4", "-Y", "api == Vote")
    assert (none.status, none.out) == (2, "")
    assert none.err.endswith("the capture has no requests\n")


RECORDED = [
    ("demo", "4.3"),
    ("kafka39-franz-go", "3.9"),
    ("kafka39-kafka-python-as-0.9", "3.9"),
    ("kafka39-kafkajs", "3.9"),
    ("kafka39-librdkafka-admin", "3.9"),
    ("kafka39-sarama", "3.9"),
    ("kafka4-aiokafka-group", "4.3"),
    ("kafka4-java-share-group", "4.3"),
    ("kafka4-kafka-go", "4.3"),
    ("kafka4-kafka-python-as-2.1", "4.3"),
    ("kafka4-librdkafka-group-848", "4.3"),
    ("kafka40-sweep-share", "4.0"),
    ("kafka44-java-streams-group", "4.4"),
]


@pytest.mark.parametrize(("name", "release"), RECORDED)
def test_clients_recorded_with_a_release_do_not_break_with_it(
    run: Run, name: str, release: str
) -> None:
    """The brokers of the capture are of that release."""
    path = CAPTURES / f"{name}.pcap"
    done = run("upgrade", path, "--to", release, "-T", "ndjson")
    assert done.status == 0
    assert "breaks" not in done.out
    capture = open_capture(path)
    offers = VersionOffers(capture)
    for window in capture.windows():
        offers.observe(window)
    assert {release_of(each) for each in offers.offers.values()} <= {f"Kafka {release}"}


def test_brokers_of_kafka_4_do_not_answer_old_produce(good: Run) -> None:
    """They offer these versions nevertheless: KAFKA-18659."""
    path = CAPTURES / "kafka4-sweep-data.pcap"
    rows = good("pairs", path, "-T", "ndjson", "-Y", "api == Produce and api_version < 4").rows
    answered = {row["api_version"]: row["status"] == "answered" for row in rows}
    assert answered == {0: False, 1: False, 2: False, 3: True}


def test_wrong_release(run: Run) -> None:
    done = run("upgrade", OLD, "--to", "5.1")
    expected = "kafkashark: --to takes a release of Kafka, 0.8.0 to 4.4, not '5.1'\n"
    assert done == (2, "", expected)


def test_columns_order_and_limit(run: Run) -> None:
    words = ["upgrade", OLD, "--to", "4.4", "-T", "csv", "--sort", "api", "-c", "2"]
    done = run(*words, "-e", "verdict", "-e", "api")
    assert (done.status, done.lines) == (1, ["verdict,api", "breaks,Fetch", "breaks,Fetch"])
    assert run(*words, "-e", "apis").err.startswith("kafkashark: --columns: no column 'apis';")
