"""The data source gives the rows of the commands, whatever was asked of a DataFrame before."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import cache
from io import StringIO
from itertools import pairwise, permutations
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import IntegerType, LongType, StructType

from dissector.errors import PipelineError, UsageError
from pipeline import register
from pipeline.jobs import data_source, local_job
from pipeline.jobs.data_source import CaptureReader, KafkaCapture
from pipeline.jobs.session import spark_errors
from pipeline.split.byte_ranges import ranges_of
from pipeline.split.collection import find_captures
from pipeline.tables.table_builder import TableOptions
from pipeline.tables.table_schemas import SCHEMAS
from tests.pipeline.split_captures import imperfect_packets, parts_of_demo
from tests.tcp_captures import write

CAPTURES = Path(__file__).parents[3] / "captures"
DEMO = str(CAPTURES / "demo.pcap")


def _reader(table: str = "exchanges", range_bytes: int = 20_000) -> CaptureReader:
    return CaptureReader([DEMO], table, TableOptions(tables=frozenset((table,))), range_bytes)


def _rows(reader: CaptureReader) -> list[dict[str, Any]]:
    pieces = reader.partitions()
    return [row for piece in pieces for batch in reader.read(piece) for row in batch.to_pylist()]


def _unnumbered(rows: list[dict[str, Any]]) -> list[str]:
    """Return rows without the numbers of connections and messages, sorted."""
    left_out = ("connection", "message")
    kept = ({name: row[name] for name in row if name not in left_out} for row in rows)
    return sorted(map(repr, kept))


@cache
def _of_a_job(table: str) -> list[str]:
    tables = local_job.dissect([DEMO], TableOptions(tables=frozenset((table,))))
    return _unnumbered(tables[table].to_pylist())


@pytest.mark.thinned(16)
@pytest.mark.parametrize("table", sorted(SCHEMAS))
@pytest.mark.parametrize("range_bytes", [20_000, 1 << 20])
def test_rows_equal_those_of_a_job(table: str, range_bytes: int) -> None:
    rows = _rows(_reader(table, range_bytes))
    assert _unnumbered(rows) == _of_a_job(table)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("table", ["connections", "events", "exchanges"])
def test_files_at_once_are_merged(table: str, tmp_path: Path) -> None:
    files = parts_of_demo(tmp_path, lambda port, to_port: int(port < to_port))
    options = TableOptions(tables=frozenset((table,)))
    expected = local_job.dissect(files, options)[table].to_pylist()
    assert len(expected) > 0
    reader = CaptureReader(files, table, options, 15_000)
    assert len(reader.partitions()) > 5 or table == "events"
    assert _unnumbered(_rows(reader)) == _unnumbered(expected)


def test_what_a_scan_reads_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of topics by the driver alone, and each part only the ranges of its connections."""
    reader = _reader(range_bytes=20_000)
    pieces = reader.partitions()
    ranges = [piece for piece in pieces if piece.part < 0]
    parts = [piece for piece in pieces if piece.part >= 0]
    assert len(ranges) > 5
    assert len(parts) == 1

    def refuse(*_: object) -> None:
        raise AssertionError("a task reads the collection again")

    monkeypatch.setattr(data_source, "collection_facts", refuse)
    rows = [row for piece in pieces for batch in reader.read(piece) for row in batch.to_pylist()]
    assert _unnumbered(rows) == _of_a_job("exchanges")
    monkeypatch.setattr(data_source, "PART_BYTES", 1)
    plan = local_job.plan_ranges(ranges_of(find_captures([DEMO]), 20_000))
    several = list(data_source._parts_of(plan, range(len(plan.ranges))))
    assert len(several) > data_source.PARTS / 2
    assert sorted(key for keys, _ in several for key in keys) == plan.crossing.tolist()
    assert min(len(of_part) for _, of_part in several) < len(ranges)


@pytest.mark.thinned(5)
@pytest.mark.parametrize(
    ("table", "columns"),
    [
        ("exchanges", ["topics", "api"]),
        ("exchanges", ["latency_ms"]),
        ("records", ["offset", "topic"]),
        ("records", ["value"]),
        ("messages", ["kind", "topics"]),
    ],
)
def test_a_schema_selects_columns(table: str, columns: list[str]) -> None:
    source = KafkaCapture({"path": DEMO, "table": table, "rangeMb": "0.02"})
    kinds = {each.name: each for each in source.schema()}
    chosen = StructType([kinds[name] for name in columns])
    reader = source.reader(chosen)
    assert isinstance(reader, CaptureReader)
    rows = _rows(reader)
    assert list(rows[0]) == columns
    expected = local_job.dissect([DEMO], TableOptions(tables=frozenset((table,))))[table]
    wanted = expected.select(columns).to_pylist()
    assert sorted(map(repr, rows)) == sorted(map(repr, wanted))


def test_columns_that_a_schema_leaves_out_are_not_made() -> None:
    options = TableOptions(tables=frozenset(("records",)), columns=frozenset(("offset",)))
    [piece] = CaptureReader([DEMO], "records", options, 1 << 20, ["offset"]).partitions()
    made = {
        name
        for table, batch in piece.batches(options)
        for name in batch.schema.names
        if table == "records"
    }
    assert made == {"connection", "offset"}


def test_a_schema_of_other_columns_is_refused() -> None:
    source = KafkaCapture({"path": DEMO})
    with pytest.raises(UsageError, match="table exchanges has no column offset"):
        source.reader(StructType().add("offset", LongType()))
    with pytest.raises(UsageError, match="column api of exchanges is string, not int"):
        source.reader(StructType().add("api", IntegerType()))


@pytest.mark.long
def test_connections_are_numbered_by_their_first_packets() -> None:
    firsts = {row["connection"] for row in _rows(_reader("connections"))}
    assert {row["connection"] for row in _rows(_reader("exchanges"))} <= firsts
    whole = sorted({row["connection"] for row in _rows(_reader("connections", 1 << 20))})
    assert whole == sorted(firsts)


def test_options_are_checked() -> None:
    with pytest.raises(UsageError, match="table takes"):
        KafkaCapture({"path": DEMO, "table": "frames"}).schema()
    with pytest.raises(UsageError, match="no option tabel"):
        KafkaCapture({"path": DEMO, "tabel": "records"}).reader(KafkaCapture({}).schema())
    for name, value in (("rangeMb", "-1"), ("rangeMb", "x"), ("ports", "9092,x")):
        with pytest.raises(UsageError, match=f"{name} takes numbers above 0, not"):
            KafkaCapture({"path": DEMO, name: value}).reader(KafkaCapture({}).schema())
    with pytest.raises(UsageError, match="showSecrets takes true, false, not 'maybe'"):
        KafkaCapture({"path": DEMO, "showSecrets": "maybe"}).reader(KafkaCapture({}).schema())
    with pytest.raises(UsageError, match="no captures"):
        KafkaCapture({"table": "records"}).reader(KafkaCapture({}).schema())
    with pytest.raises(UsageError, match="no captures"):
        CaptureReader([], "exchanges", TableOptions(), 1).partitions()


@pytest.mark.spark
def test_spark_reads_captures(spark: SparkSession, tmp_path: Path) -> None:
    register(spark)
    packets = imperfect_packets(3)
    half = len(packets) // 2
    files = [
        write(tmp_path / f"{number}.pcap", packets[a:b])
        for number, (a, b) in enumerate(pairwise([0, half, len(packets)]))
    ]
    rows = spark.read.format("kafka-capture").load(files)
    expected = local_job.dissect(files)["exchanges"]
    assert _unnumbered(rows.toArrow().to_pylist()) == _unnumbered(expected.to_pylist())
    few = rows.where("status = 'orphan' and array_size(topics) = 0")
    assert few.count() == expected["status"].to_pylist().count("orphan")
    records = spark.read.format("kafka-capture").option("table", "records").load(DEMO)
    assert records.columns == SCHEMAS["records"].names
    of_records = TableOptions(tables=frozenset(("records",)))
    assert records.count() == len(local_job.dissect([DEMO], of_records)["records"]) > 300
    few_columns = spark.read.format("kafka-capture").schema("api string, topics array<string>")
    beats = few_columns.load(files).where("api = 'Heartbeat'")
    assert beats.count() == expected["api"].to_pylist().count("Heartbeat") > 0
    with redirect_stdout(StringIO()) as plan:
        beats.explain()
    assert re.search(r"BatchScan kafka-capture\[api#\d+, topics#\d+\]", plan.getvalue())
    missing = spark.read.format("kafka-capture").load("missing.pcap")
    with pytest.raises(PipelineError, match=r"^missing.pcap: no such file$"), spark_errors():
        missing.count()
    with pytest.raises(PySparkException, match="table takes"):
        spark.read.format("kafka-capture").option("table", "x").load(DEMO)


QUERIES: dict[str, Callable[[dict[str, Any]], bool]] = {
    "true": lambda row: True,
    "api = 'Produce'": lambda row: row["api"] == "Produce",
    "latency_ms > 100 and client_id not like 'bill%'": lambda row: (
        (row["latency_ms"] or 0) > 100 and not (row["client_id"] or "bill").startswith("bill")
    ),
    "length(api) = 5": lambda row: len(row["api"]) == 5,
}
"""Conditions of SQL that Spark can and can't push down, and the same for rows."""


@pytest.mark.spark
def test_queries_of_one_frame_do_not_affect_each_other(spark: SparkSession) -> None:
    """In every order, with the pushdown of filters switched on and off in between."""
    register(spark)
    rows = _rows(_reader(range_bytes=1 << 20))
    expected = {each: sum(map(passes, rows)) for each, passes in QUERIES.items()}
    assert 0 < min(expected.values()) < max(expected.values())
    assert len(set(expected.values())) == len(expected)
    frame = spark.read.format("kafka-capture").load(DEMO)
    for pushdown in ("true", "false", "true"):
        spark.conf.set("spark.sql.python.filterPushdown.enabled", pushdown)
        for pair in permutations(QUERIES, 2):
            found = [(each, frame.where(each).count()) for each in pair]
            assert found == [(each, expected[each]) for each in pair]
    spark.conf.unset("spark.sql.python.filterPushdown.enabled")


@pytest.mark.spark
@pytest.mark.parametrize("pushdown", ["true", "false"])
def test_one_query_may_filter_a_frame_in_two_ways(spark: SparkSession, pushdown: str) -> None:
    register(spark)
    spark.conf.set("spark.sql.python.filterPushdown.enabled", pushdown)
    frame = spark.read.format("kafka-capture").load(DEMO)
    both = frame.where("api = 'Produce'").unionAll(frame.where("api = 'Fetch'"))
    counts = Counter(row["api"] for row in _rows(_reader(range_bytes=1 << 20)))
    found = {row["api"]: row["count"] for row in both.groupBy("api").count().collect()}
    assert found == {api: counts[api] for api in ("Produce", "Fetch")}
    spark.conf.unset("spark.sql.python.filterPushdown.enabled")
