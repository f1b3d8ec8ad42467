"""A folder is read file by file: connections continue, and a restart repeats and loses nothing."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark import SparkContext
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (the usual name)

from dissector.errors import UsageError
from pipeline.jobs.query import read
from pipeline.jobs.session import has_reader
from pipeline.split.byte_ranges import Range
from pipeline.split.connection_index import index_range
from pipeline.storage.parquet_store import FOLDERS
from pipeline.tables.table_builder import TableOptions
from pipeline.tables.table_schemas import SCHEMAS
from pipeline.watch.stream_job import CHECKPOINT, IDLE_NS, SETTINGS_FILE, Watch
from tests.dissector.cli.cli_traffic import ORDERS_ID, shop
from tests.pipeline.command_tables import assert_same, tables_of
from tests.pipeline.split.test_split_fragments import fragmented
from tests.pipeline.split_captures import delayed, imperfect_packets
from tests.tcp_captures import START_NS, STEP_NS, Packet, write

pytestmark = pytest.mark.spark

ALL = TableOptions(tables=frozenset(SCHEMAS), folders=("date", "cluster=prod"))


class Failing(Watch):
    """Fails after all is written, before Spark records it."""

    def _write(self, notes: DataFrame, batch: int) -> None:
        super()._write(notes, batch)
        raise OSError("the disk is full")


def _arrive(files: Sequence[str], folder: Path) -> None:
    """Copy files into the folder, in order."""
    folder.mkdir(exist_ok=True)
    for file in files:
        at = len(list(folder.iterdir()))
        os.utime(file, (1_700_000_000 + at, 1_700_000_000 + at))
        Path(file).rename(folder / Path(file).name)


def _cut(tmp_path: Path, packets: list[Packet], count: int) -> list[str]:
    """Return packets in `count` files."""
    each = -(-len(packets) // count)
    return [
        write(tmp_path / f"a.pcap{number}", packets[number * each : (number + 1) * each])
        for number in range(count)
    ]


def _process(spark: SparkSession, watch: Watch) -> None:
    query = watch.start(spark, once=True)
    query.awaitTermination()


def _assert_as_one_process(
    spark: SparkSession,
    out: Path,
    files: Sequence[Path],
    tmp_path: Path,
    late: Sequence[Path] = (),
) -> None:
    """Compare all tables with those of the commands over the files, in order of arrival."""
    expected = tables_of(files, tmp_path, late=late)
    got = {}
    for table, schema in SCHEMAS.items():
        rows = read(spark, str(out), table).select(*schema.names)
        got[table] = rows.toArrow().cast(schema)
    assert_same(got, expected)
    assert expected["exchanges"]


def _quiet(tmp_path: Path, name: str, steps: int) -> str:
    """Return a file without TCP, of a later time."""
    packet = Packet(START_NS + steps * STEP_NS, b"\xff" * 12 + b"\x08\x06" + bytes(46))
    return write(tmp_path / name, [packet])


def test_rows_are_those_of_one_process_over_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    """
    Connections and unanswered requests are written after a long silence.

    The failing run has a larger cluster than the others.
    """
    packets = fragmented(random.Random(2), imperfect_packets(1))
    more = shop().packets
    # The fourth file has the name of the topic id.
    named_at = max(place for place, each in enumerate(more) if ORDERS_ID.bytes in each.payload)
    packets += [*more[:named_at], *delayed(more[named_at:], 7 * len(packets) // 10)]
    files = _cut(tmp_path, sorted(packets, key=lambda each: each.time_ns), 5)
    # Some datagrams are split over two files.
    assert any(index_range(Range(0, file)).scan.split_fragments for file in files)
    folder, out = tmp_path / "in", tmp_path / "out"
    watch = Watch(str(folder), str(out), ALL, files=1)
    _arrive(files[:2], folder)
    _process(spark, watch)
    nameless = F.array_contains("topics", str(ORDERS_ID))
    before = read(spark, str(out), "exchanges")
    assert before.where(nameless).count() == 1
    assert not read(spark, str(out), "connections").count()
    _arrive(files[2:4], folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SparkContext, "defaultParallelism", 5)
        with pytest.raises(StreamingQueryException, match="the disk is full"):
            _process(spark, Failing(str(folder), str(out), ALL, files=1))
    _arrive([files[4], _quiet(tmp_path, "z", 3 * IDLE_NS // STEP_NS)], folder)
    _process(spark, watch)
    _process(spark, watch)
    _assert_as_one_process(spark, out, sorted(folder.iterdir()), tmp_path)
    assert (out / CHECKPOINT).exists()
    assert not (out / "_work").exists()
    with pytest.raises(UsageError, match="was started with 2 parts, not 3"):
        replace(watch, parts=3).start(spark)
    with pytest.raises(UsageError, match=r"was started with date/cluster=prod as .*, not date$"):
        replace(watch, options=replace(ALL, folders=FOLDERS)).start(spark)
    settings = out / CHECKPOINT / SETTINGS_FILE
    settings.write_text(json.dumps({"parts": 2}))  # as before the states had a number
    with pytest.raises(UsageError, match="was begun by another release of kafkashark"):
        watch.start(spark)


def test_a_spark_without_file_system_support_is_an_error(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Whatever Arrow supports: Spark itself reads the folder and writes the checkpoint."""
    here, there = str(tmp_path), "s3a://bucket/captures"
    for folder, out in ((there, here), (here, there)):
        with pytest.raises(UsageError, match=f"can't read {there}, which --watch needs$"):
            Watch(folder, out, ALL).start(spark)
    with pytest.raises(UsageError, match="none: no such folder"):
        Watch(f"{tmp_path}/none", f"{tmp_path}/out", ALL).start(spark)
    assert list(tmp_path.iterdir()) == []
    assert has_reader(spark, tmp_path.as_uri())


def test_late_missing_and_broken_files_are_reported(spark: SparkSession, tmp_path: Path) -> None:
    files = _cut(tmp_path, imperfect_packets(1), 4)
    folder, out = tmp_path / "in", tmp_path / "out"
    watch = Watch(str(folder), str(out), ALL)
    broken = tmp_path / "not whole%20#1?[é]"
    broken.write_bytes(b"no capture at all")
    _arrive([files[0], files[2], str(broken)], folder)
    _process(spark, watch)
    quiet = _quiet(tmp_path, "z", 3 * IDLE_NS // STEP_NS)
    _arrive([files[1], files[3], quiet], folder)
    _process(spark, watch)
    problems = read(spark, str(out), "problems").where("kind = 'file'").collect()
    assert sorted((Path(row["capture"]).name, row["problem"]) for row in problems) == [
        ("a.pcap1", "late: files that begin after it were read before it"),
        ("a.pcap2", "a file is missing before it: number 1"),
        (broken.name, "not a capture: text"),
    ]
    in_order = [folder / name for name in ("a.pcap0", "a.pcap2", "a.pcap1", "a.pcap3", "z")]
    # The commands would order the files by time.
    _assert_as_one_process(spark, out, in_order, tmp_path, late=[folder / "a.pcap1"])
