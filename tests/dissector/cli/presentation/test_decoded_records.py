"""`records` with decoded keys and values: schemas in the capture, columns, filters and formats."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import polars
import pytest

from dissector.public import open_capture
from tests import tcp_captures
from tests.dissector.cli.conftest import Run
from tests.dissector.values.value_captures import COUNT, produce_values, write_values
from tests.tcp_captures import Wire


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_values(tmp_path_factory.mktemp("values") / "values.pcap")


PARTS = ("format", "schema", "decoded", "problem")
DECODED = tuple(f"{side}_{part}" for side in ("key", "value") for part in PARTS)
ORDER_5 = {"id": 5, "name": "Ann", "items": [{"sku": "s5"}, {"sku": "s6"}]}


def test_columns_by_schemas_of_the_capture(good: Run, capture: Path) -> None:
    names = ",".join(DECODED)
    rows = good("records", capture, "-T", "ndjson", "--columns", f"topic,{names}").rows
    key = ["avro", "orders-key v1", "k5", None]
    avro = dict(zip(DECODED, [*key, "avro", "orders-value v4", ORDER_5, None], strict=True))
    assert rows[10] == rows[11] == {"topic": "orders", **avro}
    others = [row for row in rows if row["topic"] == "others"]
    found = [[row[f"value_{part}"] for part in PARTS] for row in others]
    assert found == [
        ["avro", "orders-value v4", None, "1 bytes behind its end at byte 18"],
        [None, "id 99", None, "the schema with id 99 is unknown"],
        ["json", None, {"user": {"id": 5}}, None],
        [None] * 4,
        [None] * 4,
    ]


@pytest.mark.thinned(3)
@pytest.mark.parametrize(
    ("chosen", "count"),
    [
        ("value.id == 5", 4),
        ("value.id in {5..7} and topic == orders", 12),
        ('value.name contains "Ann"', COUNT),
        ('any(value.items.sku == "s7")', 8),
        ('any value.items.sku == "s7"', 8),
        ('all(value.items.sku matches "s[67]")', 4),
        ('count(value.items.sku) == 2 and key_decoded == "k9"', 4),
        ('key_schema == "orders-key v1" and value_schema contains "v4"', 2 * COUNT),
        ("value.problem", 2),
        ('value.problem contains "unknown"', 1),
        ("value.user.id == 5 or value.user.name", 1),
        ("value_format == json and not value.id", 1),
        ("len(value.name) > 3", COUNT),
    ],
)
def test_filters(good: Run, capture: Path, chosen: str, count: int) -> None:
    rows = good("records", capture, "-T", "ndjson", "-Y", chosen, "--columns", "offset,value").rows
    assert len(rows) == count


def test_fields_as_columns(good: Run, capture: Path) -> None:
    words = ("--columns", "topic,value.id,value.items.sku,value.user.id", "-Y", "value.id == 5")
    rows = good("records", capture, "-T", "ndjson", *words).rows
    row = {"topic": "orders", "value.id": 5, "value.items.sku": ["s5", "s6"], "value.user.id": None}
    assert rows == [row] * 4
    assert good("records", capture, *words, "-c", "1").lines[1].split() == [
        "orders",
        "5",
        "s5,",
        "s6",
    ]


def test_all_formats_have_the_same_values(good: Run, capture: Path, tmp_path: Path) -> None:
    schema = tmp_path / "other-value.avsc"
    schema.write_text('"int"')
    words = ("records", capture, "--values", schema)
    rows = good(*words, "-T", "ndjson").rows
    table = list(csv.DictReader(io.StringIO(good(*words, "-T", "csv").out, newline="")))
    good(*words, "-T", "parquet", "-o", tmp_path / "a.parquet")
    frame = polars.read_parquet(tmp_path / "a.parquet")
    with open_capture(capture, values=[schema]) as opened:
        records = opened.records()
    assert list(rows[0])[-8:] == frame.columns[-8:] == records.columns[-8:]
    for name in DECODED:
        values = [row[name] for row in rows]
        if name.endswith("_decoded"):
            assert [each and json.loads(each) for each in frame[name]] == values
        else:
            assert frame[name].to_list() == values
        assert records[name].to_list() == frame[name].to_list()
        assert [row[name] for row in table] == [each or "" for each in frame[name].to_list()]
    lines = good(*words).lines
    assert "value_schema" in lines[0]
    assert json.dumps(ORDER_5) in lines[11]


def test_nothing_is_decoded_where_nothing_asks_for_it(good: Run, capture: Path) -> None:
    plain = good("records", capture, "-T", "ndjson")
    assert not set(DECODED) & set(plain.rows[0])
    chosen = ("--columns", "value_decoded", "-T", "ndjson", "--no-values")
    assert {row["value_decoded"] for row in good("records", capture, *chosen).rows} == {None}
    with open_capture(capture) as opened:
        assert not set(DECODED) & set(opened.records().columns)


def test_a_pipe_knows_the_schemas_so_far(
    good: Run, capture: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with capture.open("rb") as file:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(file)))  # type: ignore[type-var]
        rows = good("records", "-", "-T", "ndjson", "-Y", "value.id == 5").rows
    assert len(rows) == 4


def test_sources_by_the_environment(
    run: Run, capture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "99.avsc").write_text('{"type": "fixed", "name": "F", "size": 4}')
    monkeypatch.setenv("KAFKASHARK_VALUES", str(tmp_path))
    done = run("records", capture, "-T", "ndjson", "-Y", "topic == others")
    assert done.rows[1]["value_decoded"] == "61626364"
    monkeypatch.setenv("KAFKASHARK_VALUES", str(tmp_path / "none"))
    done = run("records", capture, "-T", "ndjson", "-Y", "value.id == 5")
    assert (done.status, done.out) == (2, "")
    assert "none: the schema cannot be read" in done.err


def test_formats_by_topic(good: Run, capture: Path) -> None:
    words = ("--value-format", "others=hex", "-Y", "topic == others", "-T", "ndjson")
    rows = good("records", capture, *words).rows
    assert [row["value_decoded"] for row in rows][3:] == ["61ff", None]


@pytest.mark.long
def test_filters_of_exchanges_pass_those_with_such_a_record(
    good: Run, run: Run, capture: Path, tmp_path: Path
) -> None:
    def count(chosen: str, path: Path = capture) -> int:
        return len(good("pairs", path, "-T", "ndjson", "-Y", chosen).rows)

    chosen = "topic == orders and value.id == 5 and api == Produce and acks == -1"
    assert count(chosen) == 2
    assert count("value.id == 5 and value.user.id == 5") == 0
    assert count("value.problem") == count("value.user.id == 5") == 1
    part = tmp_path / "part.pcapng"
    said = good("export", capture, "-Y", chosen, "-o", part)
    assert said.out.startswith("2 exchanges")
    assert count(chosen, part) == 2
    assert len(good("pairs", part, "-T", "ndjson").rows) == 3  # with that of the schemas
    assert "Per API" in good("stats", capture, "-Y", chosen).out
    done = run("pairs", capture, "--columns", "value.id")
    assert "it is a column of `kafkashark records`" in done.err
    with open_capture(capture, filter=chosen) as opened:
        assert len(list(opened)) == len(opened.exchanges()) == 2


@pytest.mark.long
def test_trees_of_decoded_records(good: Run, capture: Path) -> None:
    words = ("dissect", capture, "-V", "-Y", "request.topic_data.partition_data.index >= 0")
    lines = [line.strip() for line in good(*words).lines]
    at = lines.index("value as avro: orders-value v4, 3 fields")
    assert lines[at - 1 : at + 9] == [
        'key as avro: "k0" (orders-key v1)',
        "value as avro: orders-value v4, 3 fields",
        "id: 0 [5..6)",
        'name: "Bob\N{BULLET}" [6..13)',
        "items: 2 items [13..21)",
        "[0]: 1 field [14..17)",
        'sku: "s0" [14..17)',
        "[1]: 1 field [17..20)",
        'sku: "s1" [17..20)',
        lines[at + 8],
    ]
    for line in (
        "! value: the schema with id 99 is unknown",
        "! value as avro orders-value v4: 1 bytes behind its end at byte 18",
        "value as json: 1 field",
        "id: 5 [16..17)",
    ):
        assert line in lines
    plain = good(*words, "--no-values").lines
    assert not [line for line in plain if " as avro" in line or "! value" in line]


def test_trees_of_protobuf_messages(good: Run, tmp_path: Path) -> None:
    schema = tmp_path / "trip.proto"
    schema.write_text(
        'syntax = "proto3"; package shop; message Stop { string name = 1; sint32 delay = 2; }'
        "message Trip { repeated Stop stops = 1; repeated int32 cars = 2; string line = 3; }"
    )
    wire = Wire()
    message = bytes.fromhex("0a050a034f6c6f 12028001 2005")
    produce_values(wire, "trips", [message])
    tcp_captures.write(tmp_path / "trips.pcap", wire.packets)
    given = f"trips=protobuf:{schema}:shop.Trip"
    done = good("dissect", tmp_path / "trips.pcap", "-V", "--value-format", given)
    lines = [line.strip() for line in done.lines]
    at = next(row for row, line in enumerate(lines) if line.startswith("value as protobuf"))
    assert lines[at : at + 9] == [
        f"value as protobuf: {schema}, 4 fields",
        "stops: 1 item [0..7)",
        "[0]: 2 fields [0..7)",
        'name: "Olo" [2..7)',
        "delay: 0",
        "cars: 1 item [7..11)",
        "[0]: 128 [9..11)",
        'line: ""',
        "4: 5 [11..13)",
    ]


def test_the_tree_of_a_pipe_knows_the_schemas_so_far(
    good: Run, capture: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with capture.open("rb") as file:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(file)))  # type: ignore[type-var]
        lines = good("dissect", "-", "-V", "-Y", "topic == others").lines
    assert any("orders-value v4: 1 bytes behind" in line for line in lines)


def test_a_file_for_each_topic_with_typed_columns(
    good: Run, run: Run, capture: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "topics"
    words = ("records", capture, "-T", "parquet", "--values-as", "struct", "-o", folder)
    good(*words)
    assert {each.name for each in folder.iterdir()} == {
        "orders.parquet",
        "others.parquet",
        "_schemas.parquet",
    }
    orders = polars.read_parquet(folder / "orders.parquet")
    assert len(orders) == 2 * COUNT
    item = polars.Struct({"sku": polars.String})
    order = polars.Struct({"id": polars.Int64, "name": polars.String, "items": polars.List(item)})
    assert (orders.schema["key_decoded"], orders.schema["value_decoded"]) == (polars.String, order)
    rows = good("records", capture, "--columns", "value_decoded", "-T", "ndjson").rows
    wanted = [row["value_decoded"] for row in rows[: 2 * COUNT]]
    assert orders["value_decoded"].to_list() == wanted
    others = polars.read_parquet(folder / "others.parquet")
    values = others["value_decoded"].to_list()
    assert values == [None, None, {"user": {"id": 5}}, None, None]
    for more, said in (((), "a new or an empty folder"), (("-c", "1"), "writes all columns")):
        done = run(*words, *more)
        assert done.status == 2
        assert said in done.err
    assert "-T parquet" in run("records", capture, "--values-as", "struct").err
