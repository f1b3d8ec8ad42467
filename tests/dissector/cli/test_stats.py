from __future__ import annotations

from pathlib import Path

from dissector import open_capture
from tests import tcp_captures
from tests.dissector.cli.cli_traffic import METADATA, request_frame, response_frame
from tests.dissector.cli.conftest import Run
from tests.tcp_captures import Wire


def test_per_api(good: Run, shop: Path) -> None:
    rows = [r for r in good("stats", shop, "-T", "ndjson").rows if r["section"] == "apis"]
    (produce,) = (row for row in rows if row["api"] == "Produce")
    assert produce == {
        "section": "apis",
        "api": "Produce",
        "count": 3,
        "errors": 1,
        "unanswered": 0,
        "min_ms": 2.0,
        "p50_ms": 2.0,
        "p95_ms": 2.0,
        "p99_ms": 2.0,
        "max_ms": 2.0,
        "request_bytes": 162 + 162 + 73,
        "response_bytes": 53 + 43,
    }
    assert [row["count"] for row in rows] == sorted((row["count"] for row in rows), reverse=True)
    (beats,) = (row for row in rows if row["api"] == "Heartbeat")
    assert (beats["count"], beats["unanswered"]) == (2, 1)


def test_sections(good: Run, shop: Path) -> None:
    rows = good("stats", shop, "-T", "ndjson").rows
    assert list(dict.fromkeys(row["section"] for row in rows)) == [
        "apis",
        "clients",
        "topics",
        "brokers",
        "capture",
    ]
    topics = {row["topic"]: row["count"] for row in rows if row["section"] == "topics"}
    assert topics == {"orders": 4, "old": 1}
    clients = {(r["client_id"], r["client"]) for r in rows if r["section"] == "clients"}
    assert clients == {("shop", "10.0.0.1"), (None, "[fd00::1]"), (None, "10.0.0.1")}
    brokers = {row["broker"]: row["count"] for row in rows if row["section"] == "brokers"}
    assert brokers == {"10.0.0.2:9092": 8, "[fd00::2]:9092": 1}


def test_health_of_the_capture(good: Run, run: Run, shop: Path, tmp_path: Path) -> None:
    health = good("stats", shop, "-T", "ndjson").rows[-1]
    assert (health["packets"], health["connections"], health["kafka_connections"]) == (49, 3, 2)
    assert (health["gaps"], health["problems"]) == (0, 1)
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(shop.read_bytes()[:-3])
    assert run("stats", cut, "-T", "ndjson").rows[-1]["problems"] == 2


def test_table(good: Run, shop: Path) -> None:
    out = good("stats", shop).out
    headings = [line for line in out.splitlines() if line.startswith(("Per ", "Capture"))]
    assert headings == ["Per API", "Per client", "Per topic", "Per broker", "Capture"]
    assert "NaN" not in out


def test_statistics_of_matching_exchanges(good: Run, shop: Path) -> None:
    rows = good("stats", shop, "-T", "ndjson", "-Y", "topic == old").rows
    assert [(r["api"], r["count"]) for r in rows if r["section"] == "apis"] == [("Produce", 1)]


def test_statistics_without_exchanges(good: Run, shop: Path) -> None:
    rows = good("stats", shop, "-T", "ndjson", "-Y", "api == Vote").rows
    assert [row["section"] for row in rows] == ["capture"]
    good("stats", shop, "-Y", "api == Vote")


def test_formats(run: Run, shop: Path) -> None:
    done = run("stats", shop, "-T", "xml")
    assert done == (2, "", "kafkashark: -T takes table, ndjson, csv, parquet, not 'xml'\n")
    done = run("stats", shop, "-T", "csv", "--interval", "1")
    assert done.err == "kafkashark: --interval prints tables or ndjson, not csv or parquet\n"


def test_orphans_have_a_name(good: Run, shop: Path) -> None:
    rows = good("stats", shop, "-T", "ndjson", "--by", "api").rows[:-1]
    counts = {row["api"]: row["count"] for row in rows}
    assert counts["orphan"] == 1
    assert None not in counts


def test_a_filter_of_topics_chooses_rows(good: Run, tmp_path: Path) -> None:
    """A Metadata response has three topics; each row is of a topic that the filter is about."""
    wire = Wire()
    connection = wire.connect().syn()
    topics = [{"name": name} for name in ("payments", "orders", "audit")]
    connection.client(request_frame(METADATA, 9, 1, topics=topics))
    connection.broker(response_frame(METADATA, 9, 1, topics=topics))
    connection.client(request_frame(METADATA, 9, 2, topics=topics[1:2]))
    path = tcp_captures.write(tmp_path / "topics.pcap", wire.packets)

    def shown(*words: str) -> list[tuple[str, int]]:
        found = good("stats", path, "-T", "ndjson", *words).rows
        return sorted((row["topic"], row["count"]) for row in found if "topic" in row)

    everything = [("audit", 1), ("orders", 2), ("payments", 1)]
    assert shown() == everything
    assert shown("-Y", "topic == payments") == [("payments", 1)]
    assert shown("--topics", "-Y", "topic == payments and api == Metadata") == [("payments", 1)]
    assert shown("--by", "topic,api", "-Y", "not topic == payments") == [("orders", 1)]
    assert shown("-Y", 'topic matches "^[oa]"') == [("audit", 1), ("orders", 2)]
    assert shown("-Y", "topic == payments or api == Metadata") == everything
    assert shown("-Y", "topic == payments and topic == orders") == [
        (name, 1) for name in ("audit", "orders", "payments")
    ]
    capture = open_capture(path, filter="topic == payments")
    assert capture.stats()["topics"]["topic"].to_list() == ["payments"]
