"""
The job: which stage follows which, and what Spark shuffles between them.

The shuffles carry keys, numbers and places of parcels: few and small, for which Spark's plainest
collections take a tenth of what its tables take to plan. To the driver come how ranges were found
to be, how many connections begin in each, the names of topics, and how many rows were written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import accumulate
from math import isqrt
from typing import TypeAlias

from pyspark import RDD, Broadcast, SparkContext
from pyspark.sql import SparkSession

from dissector.errors import UsageError
from pipeline.jobs import stages
from pipeline.jobs.stages import (
    Job,
    Numbering,
    RangeKeys,
    TaskOutput,
    TaskResult,
    index_results,
    range_of,
    scans_in,
    split_keys,
)
from pipeline.split.byte_ranges import (
    RANGE_BYTES,
    Range,
    RangeScan,
    misplaced,
    placed_ranges,
    ranges_of,
)
from pipeline.split.collection import find_captures
from pipeline.split.connection_index import index_reassembled
from pipeline.split.split_fragments import add_reassembled
from pipeline.storage.atomic_files import has_files, join_path, remove_folder
from pipeline.storage.filesystems import expand_paths
from pipeline.storage.task_attempts import MAX_ATTEMPTS_SETTING
from pipeline.tables.shared_facts import merge_facts
from pipeline.tables.table_builder import Wanted
from pipeline.tables.table_schemas import SCHEMAS

WORK = "_work"
"""The folder beside the tables for what tasks leave; Spark does not look into it."""

PART_BYTES = RANGE_BYTES
"""About how many bytes of connections that cross ranges are dissected together."""

GROUP_BYTES = 1 << 30
"""Of about how many bytes of captures the rows are written by one task."""

ProgressCallback = Callable[[str], None]

IndexResult: TypeAlias = tuple[int, RangeScan | RangeKeys]
"""What is told of a range by its headers, with the task that it goes to."""


@dataclass(frozen=True, slots=True)
class Request:
    """
    What is to be made of which captures.

    Attributes:
        captures: Paths, folders, patterns.
        out: The folder of the tables.
        wanted: Which tables, and how captures are read.
        range_bytes: How much of a file is one task.
        parts: In how many parts connections are dissected that cross ranges; 0: as many as fit.
        overwrite: Whether tables that are there are replaced.
    """

    captures: Sequence[str]
    out: str
    wanted: Wanted
    range_bytes: int = RANGE_BYTES
    parts: int = 0
    overwrite: bool = False


def make_tables(
    spark: SparkSession, request: Request, on_progress: ProgressCallback = lambda text: None
) -> dict[str, int]:
    """
    Make the tables of a collection, as Parquet.

    Args:
        spark: A session.
        request: What is wanted.
        on_progress: Is told which stage is under way.

    Returns:
        How many rows each table has.

    Raises:
        UsageError: There are no captures, or there are tables already.
        CaptureError: A capture that is named is not there, or none of the files is one.
    """
    on_progress("looking for captures")
    check_request(request)
    collection = find_captures(request.captures)
    clear_tables(request.out)
    ranges = ranges_of(collection, request.range_bytes)
    work = join_path(request.out, WORK)
    job = Job(ranges, request.wanted, work, request.out)
    size = sum(each.size for each in collection.files)
    try:
        with _tries(spark.sparkContext), _Run(spark.sparkContext, job, on_progress) as run:
            return run.rows(request.parts, size)
    finally:
        remove_folder(work)


@contextmanager
def _tries(context: SparkContext) -> Iterator[None]:
    """Let tasks know, for a `with`, how often they are tried."""
    context.setLocalProperty(MAX_ATTEMPTS_SETTING, context.getConf().get(MAX_ATTEMPTS_SETTING, "1"))
    try:
        yield
    finally:
        context.setLocalProperty(MAX_ATTEMPTS_SETTING, None)  # type: ignore[arg-type]


def check_request(request: Request) -> None:
    """
    See, before anything is replaced, that there are captures, and room for tables.

    Raises:
        UsageError: There are no captures; or there is something which is not to be replaced.
        CaptureError: A capture that is named is not there.
    """
    if has_files(request.out) and not request.overwrite:
        raise UsageError(f"{request.out} is not empty; --overwrite replaces its tables")
    if not expand_paths(request.captures):
        raise UsageError("there are no captures")


def clear_tables(out: str) -> None:
    """Remove all tables, and what belongs to them."""
    for table in (*SCHEMAS, WORK, "_checkpoint", "_names", "_numbers", "_nameless", "summaries"):
        remove_folder(join_path(out, table))


class _Run:
    """One job under way."""

    def __init__(self, context: SparkContext, job: Job, say: ProgressCallback) -> None:
        self._context = context
        self._job = job
        self._say = say
        self._shared: list[Broadcast[Job]] = []
        self._tasks = max(context.defaultParallelism, isqrt(len(job.ranges)))
        """Into how many tasks small things are divided that all ranges tell."""

    def __enter__(self) -> _Run:
        return self

    def __exit__(self, *error: object) -> None:
        for job in self._shared:
            job.destroy()

    def rows(self, parts: int, size: int) -> dict[str, int]:
        """
        Run all stages.

        Args:
            parts: In how many parts connections are dissected that cross ranges; 0: as many as fit.
            size: The bytes of the captures.

        Returns:
            How many rows each table has.
        """
        begun = self._dissected(self._crossing(parts))
        numbering = self._numbering(begun)
        self._say("writing tables")
        return self._written(begun.mapPartitions(numbering.number), self._rounds(size, GROUP_BYTES))

    def _crossing(self, parts: int) -> RDD[tuple[int, RangeKeys]]:
        """Return the keys that are in more than one range, each range in its partition."""
        count = len(self._job.ranges)
        if count == 1:
            return self._context.parallelize([], 1)
        self._say("reading headers")
        crossing = self._indexed().mapPartitions(stages.crossing)
        travels = crossing.map(stages.carried_bytes).sum()
        if travels:
            self._job = replace(self._job, parts=parts or self._rounds(travels, PART_BYTES))
        return crossing.partitionBy(count, int)

    def _dissected(self, crossing: RDD[tuple[int, RangeKeys]]) -> RDD[tuple[int, TaskResult]]:
        """Return what ranges, and then parts, have left, by where connections begin."""
        self._say("dissecting")
        job = self._share(self._job)
        notes = crossing.mapPartitionsWithIndex(lambda at, given: job.value.dissect(at, given))
        if self._job.parts:
            placed = notes.keyBy(lambda note: job.value.part_of(note))
            placed = placed.partitionBy(self._job.parts, int)
            notes = placed.mapPartitionsWithIndex(lambda at, given: job.value.gather(at, given))
        return notes.flatMap(lambda told: job.value.by_range(told)).partitionBy(self._tasks, int)

    def _indexed(self) -> RDD[IndexResult]:
        """Read the headers of all ranges, some again, until all are proven."""
        ranges = list(self._job.ranges)
        seen: dict[int, RangeScan] = {}
        found = self._index(ranges, ranges)
        while True:
            seen.update((each.number, each) for each in found.mapPartitions(scans_in).collect())
            again = misplaced(self._job.ranges, seen)
            if not again:
                break
            for each in again:
                ranges[each.number] = each
            found = self._instead(found, again, self._index(ranges, again))
        placed = add_reassembled(placed_ranges(self._job.ranges, seen), seen)
        self._job = replace(self._job, ranges=placed)
        gone = [each for each in placed if each.is_empty]
        more = [
            told for rows in index_reassembled(placed) for told in split_keys(rows, self._tasks)
        ]
        if gone or more:
            found = self._instead(found, gone, self._context.parallelize(more, 1))
        return found

    def _index(self, ranges: Sequence[Range], these: Sequence[Range]) -> RDD[IndexResult]:
        """Read the headers of these ranges."""
        job, tasks = self._share(replace(self._job, ranges=list(ranges))), self._tasks
        numbers = self._context.parallelize([each.number for each in these], len(these))
        found = numbers.map(lambda number: job.value.index(number))
        return found.flatMap(lambda each: index_results(each, tasks)).partitionBy(tasks, int)

    def _instead(
        self, found: RDD[IndexResult], these: Sequence[Range], news: RDD[IndexResult]
    ) -> RDD[IndexResult]:
        """Return what was told of all ranges, with news in the place of what was told of these."""
        numbers = frozenset(each.number for each in these)
        others = found.filter(lambda told: range_of(told) not in numbers)
        return others.union(news).partitionBy(self._tasks, int)

    def _numbering(self, begun: RDD[tuple[int, TaskResult]]) -> Numbering:
        """Return what numbers connections that are given by their ranges; learn names."""
        told = begun.mapPartitions(stages.count_by_range).collect()
        counts: dict[int, int] = dict(each for each in told if isinstance(each, tuple))
        names = [each for each in told if not isinstance(each, tuple)]
        self._job = replace(self._job, names=merge_facts(names))
        each_of = (counts.get(home, 0) for home in range(len(self._job.ranges)))
        return Numbering(list(accumulate(each_of, initial=0)))

    def _written(self, numbered: RDD[TaskOutput], groups: int) -> dict[str, int]:
        """Write all rows; each group of tasks makes a file for each day and API."""
        tasks = numbered.keyBy(lambda each: each.source % groups).partitionBy(groups, int)
        rows = dict.fromkeys((each for each in SCHEMAS if each in self._job.wanted.tables), 0)
        job = self._share(self._job)
        written = tasks.mapPartitionsWithIndex(lambda at, given: job.value.finish(at, given))
        for table, count in written.collect():
            rows[table] += count
        return rows

    def _rounds(self, size: int, each: int) -> int:
        """Return into how many tasks so many bytes are divided, so that no core is left over."""
        cores = self._context.defaultParallelism
        return max(1, -(-size // (cores * each))) * cores

    def _share(self, job: Job) -> Broadcast[Job]:
        """Return what all tasks know so that it is read once by a process, not by each task."""
        shared = self._context.broadcast(job)
        self._shared.append(shared)
        return shared
