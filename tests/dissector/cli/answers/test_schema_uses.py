"""`schemas`, and statistics and reports by schemas."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from dissector.protocol.records import Record
from tests import tcp_captures
from tests.dissector.cli.cli_traffic import FETCH, request_frame, response_frame
from tests.dissector.cli.conftest import Run
from tests.dissector.values.value_captures import COUNT, produced, write_values
from tests.tcp_captures import Wire


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_values(tmp_path_factory.mktemp("values") / "values.pcap")


NEW_ID = b"\x00\x00\x00\x00\x02"


@pytest.fixture(scope="module")
def evolved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A capture whose topic changes from one schema to the next; the second one is unknown."""
    wire = Wire()
    connection = wire.connect().syn()
    produced("prices", [Record(value=b"\x00\x00\x00\x00\x01\x0a")] * 2, 0, connection)
    produced("prices", [Record(value=NEW_ID + b"\x0a\x0a")], 1, connection)
    entry = {"subject": "prices-value", "version": 1, "id": 1, "schema": '"int"'}
    produced("_schemas", [Record(key=b"{}", value=json.dumps(entry).encode())], 2, connection)
    path = tmp_path_factory.mktemp("values") / "evolved.pcap"
    tcp_captures.write(path, wire.packets)
    return path


def test_the_schemas_of_topics(good: Run, capture: Path) -> None:
    rows = good("schemas", capture, "-T", "ndjson").rows
    orders = [row for row in rows if row["topic"] == "orders"]
    names = ("part", "format", "schema", "before", "records", "undecoded", "writers", "readers")
    assert [[row[name] for name in names] for row in orders] == [
        ["key", "avro", "orders-key v1", None, 2 * COUNT, 0, ["shop"], []],
        ["value", "avro", "orders-value v4", None, 2 * COUNT, 0, ["shop"], []],
    ]
    assert orders[0]["first_packet"] == 4 < orders[0]["last_packet"]
    assert orders[0]["first_time_ns"] < orders[0]["last_time_ns"]
    others = good("schemas", capture, "-Y", "topic == others", "-T", "csv").out
    table = list(csv.DictReader(io.StringIO(others, newline="")))
    problems = {row["schema"]: row["problem"] for row in table if row["part"] == "value"}
    assert problems["id 99"] == "the schema with id 99 is unknown"
    assert problems["orders-value v4"] == "1 bytes behind its end at byte 18"
    assert sum(int(row["records"]) for row in table if row["part"] == "value") == 4


def test_a_schema_names_the_one_before_it(good: Run, evolved: Path) -> None:
    words = ("--columns", "schema,before,records,undecoded", "-Y", "topic == prices")
    lines = [line.split("  ") for line in good("schemas", evolved, *words).lines[1:]]
    assert [[cell.strip() for cell in line if cell.strip()] for line in lines] == [
        ["prices-value v1", "2", "0"],
        ["id 2", "prices-value v1", "1", "1"],
    ]
    rows = good("schemas", evolved, "--no-values", "-T", "ndjson").rows
    assert {(row["format"], row["schema"]) for row in rows} == {(None, None)}


def test_statistics_by_schemas(good: Run, capture: Path, evolved: Path) -> None:
    out = good("stats", capture, "--by", "value_schema,topic", "--by", "key_schema", "-T", "ndjson")
    found = [(row.get("value_schema"), row.get("topic"), row.get("count")) for row in out.rows]
    assert found[:3] == [
        ("orders-value v4", "orders", COUNT),
        ("id 99", "others", 1),
        ("orders-value v4", "others", 1),
    ]
    assert out.rows[3]["key_schema"] == "orders-key v1"
    few = good("stats", evolved, "--by", "value_schema", "-T", "ndjson").rows
    assert [(row.get("value_schema"), row.get("count")) for row in few[:2]] == [
        ("id 2", 1),
        ("prices-value v1", 1),
    ]


def test_a_report_has_the_schemas(good: Run, evolved: Path, tmp_path: Path) -> None:
    good("report", evolved, "-o", tmp_path / "a.txt", "--conform", "0", "--events", "0")
    text = (tmp_path / "a.txt").read_text()
    assert "the schema with id 2 is unknown" in text
    good("report", evolved, "-o", tmp_path / "b.txt", "--records", "0", "--events", "0")
    assert "Left out by --records 0." in (tmp_path / "b.txt").read_text()


def test_readers_of_a_schema(good: Run, tmp_path: Path) -> None:
    from dissector.protocol.records import build_records, new_batch

    wire = Wire()
    connection = wire.connect().syn()
    connection.client(request_frame(FETCH, 4, 1, topics=[]))
    data = build_records([new_batch([Record(value=b'{"id": 5}')])])
    partition = {"partition_index": 0, "high_watermark": 1, "records": data}
    answer = [{"topic": "seen", "partitions": [partition]}]
    connection.broker(response_frame(FETCH, 4, 1, responses=answer))
    path = tmp_path / "fetched.pcap"
    tcp_captures.write(path, wire.packets)
    (row,) = good("schemas", path, "-T", "ndjson").rows
    assert (row["format"], row["writers"], row["readers"]) == ("json", [], ["shop"])
