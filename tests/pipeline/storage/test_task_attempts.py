"""Failed reads are retried before they become a problem."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql import SparkSession

from dissector.errors import CaptureError, ReadError
from pipeline.jobs.local_job import dissect, dissect_ranges, plan_ranges
from pipeline.split.byte_ranges import Range, placed_ranges, ranges_of
from pipeline.split.collection import Collection, inspect_file
from pipeline.split.connection_index import index_range
from pipeline.storage.filesystems import open_file
from pipeline.storage.task_attempts import MAX_ATTEMPTS, MAX_ATTEMPTS_SETTING, will_be_retried
from pipeline.tables.table_builder import TableOptions
from pipeline.tables.table_schemas import SCHEMAS
from tests.pipeline.split_captures import imperfect_packets
from tests.tcp_captures import write

ALL = TableOptions(tables=frozenset(SCHEMAS))


def _unreadable(path: Path) -> str:
    """Make a file that can't be opened until replaced: a link to itself."""
    path.symlink_to(path)
    return str(path)


class _Failing:
    """A file with some failures to read at first."""

    def __init__(self, path: str, failures: int) -> None:
        self.path, self.failures = path, failures

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read the file, which is repaired before the next attempt."""
        for _ in batches:
            context = TaskContext.get()
            assert context is not None
            tried = context.attemptNumber()
            if tried == self.failures:
                Path(f"{self.path}.whole").replace(self.path)
            seen = index_range(Range(0, self.path)).scan
            rows = {"tried": [tried], "packets": [seen.packets], "damaged": [seen.damaged]}
            yield pa.RecordBatch.from_pydict(rows)


def test_nothing_is_retried_outside_spark() -> None:
    assert not will_be_retried()


def test_permanent_and_transient_errors_are_distinguished(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="too many levels of symbolic links"):
        open_file(_unreadable(tmp_path / "a.pcap"))
    for name, reason in (("none", "no such file"), ("", "is a directory")):
        with pytest.raises(CaptureError, match=reason) as error:
            open_file(str(tmp_path / name))
        assert not isinstance(error.value, ReadError)


def test_a_permanently_unreadable_file_is_a_problem(tmp_path: Path) -> None:
    path = _unreadable(tmp_path / "a.pcap")
    assert inspect_file(path).problem == "too many levels of symbolic links"
    found = index_range(Range(0, path)).scan
    assert (found.packets, found.damaged) == (0, True)


@pytest.mark.long
def test_an_uncounted_file_is_not_read_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else its packets would get the numbers of others."""
    packets = imperfect_packets(1)
    half = len(packets) // 2
    files = [
        write(tmp_path / f"{n}.pcap", part)
        for n, part in enumerate((packets[:half], packets[half:]))
    ]
    expected = dissect(files[1:], ALL)
    plan = plan_ranges(ranges_of(Collection.of(files)))
    seen = {each.number: index_range(each).scan for each in plan.ranges}
    seen[0] = replace(seen[0], packets=0, damaged=True, problem="input/output error")
    ranges = placed_ranges(plan.ranges, seen)
    assert [each.first_packet for each in ranges] == [0, 0]
    got = dissect_ranges(ranges, ALL)
    problems = got.pop("problems").to_pylist()
    expected.pop("problems")
    assert [(row["capture"], row["problem"]) for row in problems if row["kind"] == "file"] == [
        (files[0], "input/output error")
    ]
    assert {name: table.num_rows for name, table in got.items()} == {
        name: table.num_rows for name, table in expected.items()
    }


@pytest.mark.spark
@pytest.mark.parametrize("failures", [2, MAX_ATTEMPTS])
def test_spark_retries(spark: SparkSession, failures: int, tmp_path: Path) -> None:
    assert spark.conf.get(MAX_ATTEMPTS_SETTING) == str(MAX_ATTEMPTS)
    path = _unreadable(tmp_path / "a.pcap")
    packets = imperfect_packets(1)
    write(Path(f"{path}.whole"), packets)
    rows = spark.range(0, 1, 1, 1).mapInArrow(
        _Failing(path, failures), "tried long, packets long, damaged boolean"
    )
    row = rows.collect()[0]
    if failures < MAX_ATTEMPTS:
        assert tuple(row) == (failures, len(packets), False)
    else:
        assert tuple(row) == (MAX_ATTEMPTS - 1, 0, True)
