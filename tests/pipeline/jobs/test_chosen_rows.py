"""The conditions of the data source: the rows are those that a filter leaves of all rows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from dissector.errors import UsageError
from pipeline import register
from pipeline.jobs.data_source import CaptureReader, KafkaCapture
from pipeline.storage.parquet_store import TIMES
from pipeline.tables.table_schemas import SCHEMAS
from tests.pipeline.split_captures import parts_of_demo

CAPTURES = Path(__file__).parents[3] / "captures"
DEMO = str(CAPTURES / "demo.pcap")

Row = dict[str, Any]


def _reader(paths: list[str], table: str, **options: str) -> CaptureReader:
    paths_given = {f"path{'s' if len(paths) > 1 else ''}": _joined(paths)}
    source = KafkaCapture({**paths_given, "table": table, "rangeMb": "0.02", **options})
    reader = source.reader(source.schema())
    assert isinstance(reader, CaptureReader)
    return reader


def _joined(paths: list[str]) -> str:
    return paths[0] if len(paths) == 1 else str(paths).replace("'", '"')


def _rows(reader: CaptureReader) -> list[Row]:
    pieces = reader.partitions()
    return [row for piece in pieces for batch in reader.read(piece) for row in batch.to_pylist()]


def _time(row: Row) -> int | None:
    return next((row[name] for name in TIMES if row.get(name) is not None), None)


def _text(time_ns: int) -> str:
    moment = datetime.fromtimestamp(time_ns // 1_000_000_000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{time_ns % 1_000_000_000:09}Z"


def _expected(rows: list[Row], passes: Callable[[Row], bool]) -> list[str]:
    return sorted(repr(row) for row in rows if passes(row))


CHOICES: dict[str, tuple[dict[str, str], Callable[[Row], bool]]] = {
    "one API": ({"apis": "Fetch"}, lambda row: row["api"] == "Fetch"),
    "several, and tokens": (
        {"apis": "produce, SaslToken,Heartbeat"},
        lambda row: row["api"] in ("Produce", "SaslToken", "Heartbeat"),
    ),
    "topics": (
        {"topics": "demo.orders,__consumer_offsets"},
        lambda row: bool(
            {"demo.orders", "__consumer_offsets"} & {row.get("topic"), *(row.get("topics") or ())}
        ),
    ),
}


@pytest.mark.thinned(6)
@pytest.mark.parametrize("table", ["exchanges", "messages", "records"])
@pytest.mark.parametrize("choice", CHOICES)
def test_rows_equal_those_that_a_filter_leaves(table: str, choice: str) -> None:
    options, passes = CHOICES[choice]
    rows = _rows(_reader([DEMO], table))
    expected = _expected(rows, passes)
    assert 0 < len(expected) < len(rows)
    assert sorted(map(repr, _rows(_reader([DEMO], table, **options)))) == expected


@pytest.mark.thinned(5)
@pytest.mark.parametrize("table", ["connections", "events", "exchanges", "records", "fields"])
@pytest.mark.parametrize("overlapping", [False, True])
def test_times_choose_rows_and_ranges(table: str, overlapping: bool, tmp_path: Path) -> None:
    files = [DEMO]
    if overlapping:
        files = parts_of_demo(tmp_path, lambda port, to_port: int(port < to_port))
    whole = _reader(files, table)
    rows = _rows(whole)
    times = sorted(time for row in rows if (time := _time(row)) is not None)
    fifth = len(times) // 5
    whole_file = _reader(files, table, rangeMb="1", since=_text(times[fifth]))
    assert len(_rows(whole_file)) == sum((_time(row) or 0) >= times[fifth] for row in rows)
    for begin, end in ((None, fifth), (fifth, 2 * fifth), (4 * fifth, None)):
        since, until = (None if each is None else times[each] for each in (begin, end))
        bounds = {"since": since, "until": until}
        options = {name: _text(time) for name, time in bounds.items() if time is not None}
        chosen = _reader(files, table, **options)
        expected = _expected(
            rows,
            lambda row, since=since, until=until: (
                (time := _time(row)) is not None
                and (since is None or time >= since)
                and (until is None or time < until)
            ),
        )
        assert sorted(map(repr, _rows(chosen))) == expected
        assert len(chosen.partitions()) < len(whole.partitions()) or table == "events"


@pytest.mark.parametrize("range_mb", ["0.02", "1"])
def test_a_period_without_packets_has_no_rows(range_mb: str) -> None:
    reader = _reader([DEMO], "exchanges", until="1999-01-01T00:00Z", rangeMb=range_mb)
    assert len(reader.partitions()) == 1
    assert _rows(reader) == []


def test_few_tasks_read_names_only_if_rows_need_them(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = _rows(_reader([DEMO], "connections"))
    last = max(row["first_time_ns"] for row in rows)
    reader = _reader([DEMO], "connections", since=_text(last))

    def refuse(*_: object) -> None:
        raise AssertionError("the collection is read again")

    monkeypatch.setattr("pipeline.jobs.data_source.collection_facts", refuse)
    assert [row["first_time_ns"] for row in _rows(reader)] == [last]


def test_columns_of_conditions_need_not_be_asked_for() -> None:
    options = {"path": DEMO, "table": "records", "rangeMb": "0.02", "apis": "Produce"}
    source = KafkaCapture({**options, "topics": "demo.orders"})
    kinds = {each.name: each for each in source.schema()}
    reader = source.reader(type(source.schema())([kinds["offset"]]))
    assert isinstance(reader, CaptureReader)
    expected = [
        {"offset": row["offset"]}
        for row in _rows(_reader([DEMO], "records"))
        if row["api"] == "Produce" and row["topic"] == "demo.orders"
    ]
    found = _rows(reader)
    assert sorted(map(repr, found)) == sorted(map(repr, expected))
    assert found


def test_conditions_are_checked() -> None:
    for table, options, error in (
        ("exchanges", {"apis": "Produse"}, "no API is called Produse; did you mean Produce"),
        ("exchanges", {"since": "now"}, "since takes a time as .*, not 'now'"),
        ("exchanges", {"since": "2024-05-02", "until": "2024-05-01"}, "until 2024-05-01 is not"),
        ("connections", {"apis": "Fetch"}, "table connections has no column for apis"),
        ("problems", {"topics": "a"}, "table problems has no column for topics"),
        ("findings", {"until": "2024-05-01"}, "table findings has no column for until"),
    ):
        source = KafkaCapture({"path": DEMO, "table": table, **options})
        with pytest.raises(UsageError, match=error):
            source.reader(source.schema())


@pytest.mark.spark
def test_spark_reads_chosen_rows(spark: SparkSession) -> None:
    register(spark)
    rows = spark.read.format("kafka-capture").option("rangeMb", "0.02").load(DEMO)
    produced = rows.where("api = 'Produce' and array_contains(topics, 'demo.orders')").count()
    chosen = spark.read.format("kafka-capture").option("rangeMb", "0.02").option("apis", "Produce")
    frame = chosen.option("topics", "demo.orders").load(DEMO)
    # Each frame keeps its own conditions, also in one query.
    both = frame.unionAll(rows)
    assert (frame.count(), both.count()) == (produced, produced + rows.count())
    assert produced > 0
    assert chosen.option("until", "1999-01-01T00:00Z").load(DEMO).count() == 0
    assert set(SCHEMAS["exchanges"].names) == set(frame.columns)
