"""The data source gives the rows of the commands, and skips early what a query excludes."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, In, IsNull, Not, StringContains

from dissector.errors import PipelineError, UsageError
from pipeline import register
from pipeline.jobs import local_job
from pipeline.jobs.data_source import CaptureReader, KafkaCapture
from pipeline.jobs.session import spark_errors
from pipeline.tables.table_builder import TableOptions
from pipeline.tables.table_schemas import SCHEMAS
from tests.pipeline.split_captures import imperfect_packets
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


@pytest.mark.parametrize("table", sorted(SCHEMAS))
@pytest.mark.parametrize("range_bytes", [20_000, 1 << 20])
def test_rows_equal_those_of_a_job(table: str, range_bytes: int) -> None:
    rows = _rows(_reader(table, range_bytes))
    assert _unnumbered(rows) == _of_a_job(table)


def test_connections_are_numbered_by_their_first_packets() -> None:
    firsts = {row["connection"] for row in _rows(_reader("connections"))}
    assert {row["connection"] for row in _rows(_reader("exchanges"))} <= firsts
    whole = sorted({row["connection"] for row in _rows(_reader("connections", 1 << 20))})
    assert whole == sorted(firsts)


@pytest.mark.parametrize(
    ("filters", "passes"),
    [
        ([EqualTo(("api",), "Fetch")], lambda row: row["api"] == "Fetch"),
        ([In(("api",), ("Fetch", "Produce"))], lambda row: row["api"] in ("Fetch", "Produce")),
        (
            [GreaterThan(("latency_ms",), 5.0), Not(StringContains(("client_id",), "bill"))],
            lambda row: (row["latency_ms"] or 0) > 5 and "bill" not in (row["client_id"] or "bill"),
        ),
        ([IsNull(("latency_ms",))], lambda row: row["latency_ms"] is None),
    ],
)
def test_filters_are_pushed_down(filters: list[Filter], passes: Any) -> None:
    reader = _reader(range_bytes=1 << 20)
    assert list(reader.pushFilters(filters)) == []
    rows = _rows(reader)
    expected = list(filter(passes, _rows(_reader(range_bytes=1 << 20))))
    assert 0 < len(expected) < len(_rows(_reader(range_bytes=1 << 20)))
    assert rows == expected


def test_filters_on_nested_fields_are_left_to_spark() -> None:
    nested = EqualTo(("topics", "element"), "x")
    assert list(_reader().pushFilters([nested, Not(nested)])) == [nested, Not(nested)]


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
    missing = spark.read.format("kafka-capture").load("missing.pcap")
    with pytest.raises(PipelineError, match=r"^missing.pcap: no such file$"), spark_errors():
        missing.count()
    with pytest.raises(PySparkException, match="table takes"):
        spark.read.format("kafka-capture").option("table", "x").load(DEMO)
