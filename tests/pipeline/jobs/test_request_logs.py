"""A request log has the rows of one process; what can't have them is refused."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession

from dissector.errors import ReadError
from dissector.request_log.log_times import use_timezone
from pipeline.jobs.local_job import dissect, dissect_ranges
from pipeline.split.byte_ranges import ranges_of
from pipeline.split.collection import Collection
from pipeline.storage.filesystems import ReadablePrefix
from pipeline.storage.stored_file import StoredFile
from pipeline.tables.dissect_task import UNREAD, dissect_range
from pipeline.tables.table_builder import TableOptions
from pipeline.tables.table_schemas import SCHEMAS
from tests.corpus import FOLDER
from tests.pipeline.command_tables import assert_same, tables_of
from tests.pipeline.jobs.test_job import job_tables

LOGS = sorted(FOLDER.glob("*request-log*"))
ALL = TableOptions(tables=frozenset(SCHEMAS))


@pytest.mark.thinned(3)
@pytest.mark.parametrize("path", LOGS, ids=[path.name for path in LOGS])
@pytest.mark.parametrize("zone", ["UTC", "+05:30"])
def test_a_log_has_the_rows_of_one_process(path: Path, zone: str, tmp_path: Path) -> None:
    try:
        expected = tables_of([path], tmp_path, "--timezone", zone)
    finally:
        use_timezone("UTC")
    assert any(row["local_ms"] is not None for row in expected["exchanges"])
    assert expected["events"]
    assert_same(dissect([str(path)], replace(ALL, timezone=zone)), expected)


def _rotated(log: Path, folder: Path) -> list[Path]:
    """Write a log as rotated files, the older ones compressed, in an order that is not theirs."""
    with gzip.open(log, "rt") as lines:
        every = lines.readlines()
    third = len(every) // 3
    parts = every[:third], every[third : 2 * third], every[2 * third :]
    paths = []
    for number, part in enumerate(parts):
        path = folder / f"kafka-request.log.{3 - number}"
        data = "".join(part).encode()
        if number < 2:
            path = path.with_name(f"{path.name}.gz")
            data = gzip.compress(data)
        path.write_bytes(data)
        paths.append(path)
    return [paths[2], paths[0], paths[1]]


def test_rotated_logs_of_several_brokers_and_captures_are_one_capture(tmp_path: Path) -> None:
    logs = _rotated(LOGS[0], tmp_path)
    for files in (logs, [*logs, *LOGS[1:], FOLDER / "demo.pcap"]):
        expected = tables_of(files, tmp_path)
        assert any(row["local_ms"] is not None for row in expected["exchanges"])
        assert_same(dissect([str(path) for path in files], ALL, range_bytes=1 << 15), expected)


def test_what_is_no_log_is_a_problem_beside_them(tmp_path: Path) -> None:
    logs = _rotated(LOGS[0], tmp_path)
    expected = tables_of(logs, tmp_path)
    text = tmp_path / "notes.txt"
    text.write_text("nothing")
    got = dissect([*map(str, logs), str(text)], ALL)
    assert_same(got, expected)
    problems = [row for row in got["problems"].to_pylist() if row["capture"] == str(text)]
    assert [row["problem"] for row in problems] == ["not a capture: text"]


def test_a_log_that_is_gone_costs_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logs = _rotated(LOGS[0], tmp_path)
    expected = tables_of(logs[1:], tmp_path)
    monkeypatch.chdir(tmp_path)
    ranges = ranges_of(Collection.of([path.name for path in logs]))
    logs[0].unlink()
    rows = [*dissect_range(ranges[0], np.zeros(0, np.int64), 1, ALL)]
    assert sum(len(rows) for table, rows in rows if table == "exchanges") == len(
        expected["exchanges"]
    )
    assert [rows["path"].to_pylist() for table, rows in rows if table == UNREAD] == [[logs[0].name]]


def test_an_unreadable_byte_of_a_log_costs_the_rest_of_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = _rotated(LOGS[0], tmp_path)
    expected = tables_of([logs[1], logs[2]], tmp_path)

    def failing(reader: StoredFile) -> ReadablePrefix:
        opened = reader_of(reader)
        if reader._location == str(logs[0]):
            opened.failure = ReadError(str(logs[0]), "input/output error", 0)
        return opened

    reader_of = StoredFile.open
    collection = Collection.of([str(path) for path in logs])
    monkeypatch.setattr(StoredFile, "open", failing)
    got = dissect_ranges(ranges_of(collection), ALL)
    assert_same({"exchanges": got["exchanges"]}, {"exchanges": expected["exchanges"]})
    problems = {(row["capture"], row["problem"]) for row in got["problems"].to_pylist()}
    assert (str(logs[0]), "input/output error") in problems


@pytest.mark.spark
def test_spark_has_the_rows_of_one_process(spark: SparkSession, tmp_path: Path) -> None:
    logs = [*_rotated(LOGS[0], tmp_path), FOLDER / "demo.pcap"]
    expected = tables_of(logs, tmp_path)
    assert_same(
        job_tables(spark, [str(path) for path in logs], tmp_path / "tables", 1 << 15), expected
    )
