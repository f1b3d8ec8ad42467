"""Service response times."""

from __future__ import annotations

import io
from typing import Any

import pytest

from dissector import Capture, open_capture
from dissector.engine.exchanges.exchange_columns import exchange_columns, row_columns, with_names
from dissector.engine.exchanges.exchange_facts import read_summaries
from dissector.summary.statistics import Grouping, Statistics, health
from tests.default_frames import request, response
from tests.tcp_captures import STEP_NS, Wire, pcap_file

PRODUCE, METADATA, HEARTBEAT = 0, 3, 12


def capture() -> Capture:
    wire = Wire()
    connection = wire.connect().syn()
    for n in range(1, 11):
        connection.client(request(HEARTBEAT, 4, n, group_id="g"))
        wire.now_ns += (n - 2) * STEP_NS  # answered after n milliseconds
        connection.broker(response(HEARTBEAT, 4, n, error_code=27 if n == 4 else 0))
    topics = [{"name": "a"}, {"name": "b"}]
    connection.client(request(METADATA, 1, 20, "caf\udce9", topics=topics))
    other = wire.connect(60000, hosts=("10.0.0.9", "10.0.0.2")).syn()
    topic = {"name": "a", "partition_data": []}
    other.client(request(PRODUCE, 7, 1, None, acks=0, topic_data=[topic]))
    return open_capture("-", stdin=io.BytesIO(pcap_file(wire.packets)))


def statistics(source: Capture) -> dict[str, list[dict[str, Any]]]:
    """Return the report of single rows, checked against that of rows in bulk."""
    reports = Statistics(), Statistics()
    for window in source.windows():
        rows = [exchange.row() for exchange in source.exchanges_of(window)]
        reports[0].add(row_columns(rows))
        known = read_summaries(window.exchanges, source.names)
        assert source.reading is not None
        files, ends = source.reading.files_of, source.reading.endpoints.of_all
        columns = exchange_columns(window.exchanges, known, files, ends, source.reading.origins_of)
        reports[1].add(with_names(columns, source.names))
    assert reports[0].sections() == reports[1].sections()
    assert reports[0].problems == reports[1].problems
    return reports[0].sections()


def test_sections() -> None:
    report = statistics(capture())
    heartbeat, *rest = report["apis"]
    size = len(request(HEARTBEAT, 4, 1, group_id="g")) - 4
    assert heartbeat == {
        "api": "Heartbeat",
        "count": 10,
        "errors": 1,
        "unanswered": 0,
        "min_ms": 1.0,
        "p50_ms": 5.0,
        "p95_ms": 10.0,
        "p99_ms": 10.0,
        "max_ms": 10.0,
        "request_bytes": 10 * size,
        "response_bytes": 10 * (len(response(HEARTBEAT, 4, 1)) - 4),
    }
    assert [(r["api"], r["count"], r["unanswered"], r["max_ms"]) for r in rest] == [
        ("Metadata", 1, 1, None),
        ("Produce", 1, 0, None),
    ]
    assert [(r["topic"], r["count"]) for r in report["topics"]] == [("a", 2), ("b", 1)]
    assert [(r["broker"], r["count"]) for r in report["brokers"]] == [("10.0.0.2:9092", 12)]
    assert [(r["client_id"], r["client"], r["count"]) for r in report["clients"]] == [
        ("test", "10.0.0.1", 10),
        ("caf\\xe9", "10.0.0.1", 1),
        (None, "10.0.0.9", 1),
    ]


@pytest.mark.thinned(4)
@pytest.mark.parametrize("keys", [("topic", "error"), ("error", "topic")])
@pytest.mark.parametrize(
    ("topics", "errors", "pairs"), [(3, 2, 6), (1, 500, 500), (20, 15, 300 - 60), (900, 700, 6300)]
)
def test_pairs_of_topics_and_errors_are_bounded(
    keys: tuple[str, str], topics: int, errors: int, pairs: int
) -> None:
    row = next(iter(capture())).row()
    row |= {
        "topics": [f"t{number}" for number in range(topics)],
        "errors": [f"e{number}" for number in range(errors)],
    }
    report = Statistics({"pairs": Grouping(keys, ("counts",))})
    report.add(row_columns([row, row]))
    rows = report.sections()["pairs"]
    assert {each["count"] for each in rows} == {2}
    assert pairs * 0.8 <= len(rows) <= min(topics * errors, 100 + 4 * (topics + errors))


def test_capture_without_kafka_has_empty_sections() -> None:
    empty = open_capture("-", stdin=io.BytesIO(pcap_file([])))
    assert statistics(empty) == {"apis": [], "clients": [], "topics": [], "brokers": []}


def test_health() -> None:
    source = capture()
    list(source)
    counters = health(source.reading, problems=3)
    assert (counters["packets"], counters["connections"], counters["kafka_connections"]) == (
        50,
        2,
        2,
    )
    assert (counters["tls_connections"], counters["gaps"], counters["skipped_bytes"]) == (0, 0, 0)
    assert counters["problems"] == 3


def test_health_counts_skipped_packets() -> None:
    wire = Wire()
    wire.connect().syn()
    arp = wire.packets[0].data[:12] + b"\x08\x06" + bytes(28)
    packets = [type(wire.packets[0])(1, arp), *wire.packets]
    source = open_capture("-", stdin=io.BytesIO(pcap_file(packets)))
    list(source)
    assert health(source.reading, 0)["packets passed over: not IP"] == 1
