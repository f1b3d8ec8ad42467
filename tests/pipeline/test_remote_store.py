"""Captures and tables in a remote store, without local paths."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from pipeline.jobs.job import Request, make_tables
from pipeline.jobs.local_job import plan_ranges
from pipeline.jobs.query import read
from pipeline.split.byte_ranges import ranges_of
from pipeline.split.collection import Collection
from pipeline.storage.filesystems import MIN_READ_BYTES
from pipeline.tables.table_builder import TableOptions
from pipeline.tables.table_schemas import SCHEMAS
from tests.pipeline.command_tables import assert_same, tables_of
from tests.pipeline.s3_store import BUCKET, Bucket, bucket
from tests.pipeline.split.test_range_reader import RANGE_BYTES, without
from tests.pipeline.split_captures import imperfect_packets, record_starts
from tests.tcp_captures import write

pytestmark = pytest.mark.spark

TABLES = ("connections", "exchanges")
WANTED = TableOptions(tables=frozenset(TABLES))


@pytest.fixture
def store(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    """An empty store for this process and the workers."""
    with bucket() as kept:
        before = dict(spark.sparkContext.environment)
        for name, value in kept.environment.items():
            monkeypatch.setenv(name, value)
            spark.sparkContext.environment[name] = value
        yield kept
        spark.sparkContext.environment.clear()
        spark.sparkContext.environment.update(before)


def test_tables_are_written_to_the_store(
    spark: SparkSession, store: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    packets = imperfect_packets(3)
    half = len(packets) // 2
    files = [write(Path("0.pcap"), packets[:half]), write(Path("1.pcap"), packets[half:])]
    whole = tables_of(files, tmp_path)
    expected = {table: whole[table] for table in TABLES}
    for file in files:
        store.objects[f"in/{file}"] = Path(file).read_bytes()
        Path(file).unlink()
    before = {each.name for each in tmp_path.iterdir()}
    store.objects["in/_hidden.pcap"] = b""
    uris = [f"s3a://{BUCKET}/in/{file}" for file in files]
    assert [each.path for each in Collection.of([f"s3a://{BUCKET}/in"]).files] == uris
    assert [each.path for each in Collection.of([f"s3a://{BUCKET}/in/0*"]).files] == uris[:1]
    store.objects["out/exchanges/old.parquet"] = b"what was there is replaced"
    request = Request([f"s3a://{BUCKET}/in/"], f"s3://{BUCKET}/out", WANTED, overwrite=True)
    counts = make_tables(spark, request).rows
    found = {table: _rows(store, table) for table in expected}
    for table, rows in expected.items():
        for row in rows:
            if "capture" in row:
                row["capture"] = f"s3a://{BUCKET}/in/{row['capture']}"
        names = SCHEMAS[table].names
        theirs = sorted(repr({name: row[name] for name in names}) for row in rows)
        ours = [repr({name: row[name] for name in names}) for row in found[table]]
        assert sorted(ours) == theirs, table
        assert counts[table] == len(theirs)
    # No temporary files are left, neither locally nor in the store.
    assert not [key for key in store.objects if "_work" in key and not key.endswith("/")]
    assert {each.name for each in tmp_path.iterdir()} == before


@pytest.mark.parametrize("part", [0.5, 2.5])
def test_an_unreadable_byte_costs_no_other_range(
    part: float, spark: SparkSession, store: Bucket, tmp_path: Path
) -> None:
    path, out = tmp_path / "a.pcap", tmp_path / "out"
    packets = imperfect_packets(3, rounds=40)
    write(path, packets)
    starts = record_starts(path)
    ranges = plan_ranges(ranges_of(Collection.of([str(path)]), RANGE_BYTES)).ranges
    bad = next(at for at in starts if at > part * RANGE_BYTES) + 20
    store.objects["a.pcap"] = path.read_bytes()
    store.unreadable["a.pcap"] = bad
    uri = f"s3://{BUCKET}/a.pcap"
    options = TableOptions(tables=frozenset((*TABLES, "problems")))
    make_tables(spark, Request([uri], str(out), options, range_bytes=RANGE_BYTES))
    [row] = read(spark, str(out), "problems").where("kind = 'file'").collect()
    assert row["capture"] == uri
    assert bad - MIN_READ_BYTES < row["position"] <= bad
    lost = bisect(starts, row["position"]) - 1, starts.index(ranges[int(part) + 1].start)
    whole = without(packets, *lost, uri, tmp_path / "b")
    got = {name: read(spark, str(out), name).select(*SCHEMAS[name].names) for name in TABLES}
    found = {name: rows.toArrow().cast(SCHEMAS[name]) for name, rows in got.items()}
    assert_same(found, {name: whole[name] for name in TABLES})


def _rows(store: Bucket, table: str) -> list[dict[str, object]]:
    """Return the rows of a table."""
    rows = []
    for key, data in store.objects.items():
        if key.startswith(f"out/{table}/") and key.endswith(".parquet"):
            rows += pq.read_table(pa.BufferReader(data)).to_pylist()
    return rows
