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
from operator import add
from typing import Any, TypeVar

import pyarrow as pa
from pyspark import RDD, SparkContext, StorageLevel
from pyspark.sql import SparkSession

from dissector.errors import UsageError
from pipeline import stages
from pipeline.collection import Collection
from pipeline.index import Indexed, index_whole
from pipeline.loose import made_whole
from pipeline.names import merged
from pipeline.ranges import RANGE_BYTES, Seen, prove, proven, ranges_of
from pipeline.schemas import SCHEMAS
from pipeline.stages import Begun, Job, Keys, Left, Note, Numbering
from pipeline.tables import Wanted
from pipeline.tries import TRIES_SETTING
from pipeline.writing import has_files, joined, removed

WORK = "_work"
"""The folder beside the tables for what tasks leave; Spark does not look into it."""

PART_BYTES = RANGE_BYTES
"""About how many bytes of connections that cross ranges are dissected together."""

GROUP_BYTES = 1 << 30
"""Of about how many bytes of captures the rows are written by one task."""

Say = Callable[[str], None]

Item = TypeVar("Item")


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
    spark: SparkSession, request: Request, say: Say = lambda text: None
) -> dict[str, int]:
    """
    Make the tables of a collection, as Parquet.

    Args:
        spark: A session.
        request: What is wanted.
        say: Is told which stage is under way.

    Returns:
        How many rows each table has.

    Raises:
        UsageError: There are no captures, or there are tables already.
    """
    clear(request.out, request.overwrite)
    say("looking for captures")
    collection = Collection.of(request.captures)
    ranges = ranges_of(collection, request.range_bytes)
    if not ranges:
        raise UsageError("there are no captures")
    work = joined(request.out, WORK)
    job = Job(ranges, request.wanted, work, request.out)
    size = sum(each.size for each in collection.files)
    try:
        with _tries(spark.sparkContext), _Run(spark.sparkContext, job, say) as run:
            return run.rows(request.parts, size)
    finally:
        removed(work)


@contextmanager
def _tries(context: SparkContext) -> Iterator[None]:
    """Let tasks know, for a `with`, how often they are tried."""
    context.setLocalProperty(TRIES_SETTING, context.getConf().get(TRIES_SETTING, "1"))
    try:
        yield
    finally:
        context.setLocalProperty(TRIES_SETTING, None)  # type: ignore[arg-type]


def may_write(out: str, overwrite: bool) -> bool:
    """
    Tell whether there is nothing yet.

    Raises:
        UsageError: There is something, which is not to be replaced.
    """
    is_empty = not has_files(out)
    if not (is_empty or overwrite):
        raise UsageError(f"{out} is not empty; --overwrite replaces its tables")
    return is_empty


def clear(out: str, overwrite: bool) -> None:
    """
    Make room for tables.

    Raises:
        UsageError: There is something, which is not to be replaced.
    """
    if may_write(out, overwrite):
        return
    for table in (*SCHEMAS, WORK, "_checkpoint", "_names", "_numbers", "_nameless", "summaries"):
        removed(joined(out, table))


class _Run:
    """One job under way."""

    def __init__(self, context: SparkContext, job: Job, say: Say) -> None:
        self._context = context
        self._job = job
        self._say = say
        self._kept: list[RDD[Any]] = []
        self._names: list[pa.RecordBatch] = []
        self._tasks = max(context.defaultParallelism, isqrt(len(job.ranges)))
        """Into how many tasks small things are divided that all ranges tell."""

    def __enter__(self) -> _Run:
        return self

    def __exit__(self, *error: object) -> None:
        for told in self._kept:
            told.unpersist()

    def rows(self, parts: int, size: int) -> dict[str, int]:
        """
        Run all stages.

        Args:
            parts: In how many parts connections are dissected that cross ranges; 0: as many as fit.
            size: The bytes of the captures.

        Returns:
            How many rows each table has.
        """
        notes = self._dissected(self._crossing(), parts)
        self._say("numbering connections")
        left = notes.flatMap(stages.left_in)
        numbered = self._numbered(left)
        self._job = replace(self._job, names=merged(self._names))
        self._say("writing tables")
        return self._written(left, numbered, self._rounds(size, GROUP_BYTES))

    def _crossing(self) -> RDD[tuple[int, Keys]]:
        """Return the keys that are in more than one range, each range in its partition."""
        count = len(self._job.ranges)
        if count == 1:
            return self._context.parallelize([], 1)
        self._say("reading headers")
        tasks = self._tasks
        keys = self._indexed().flatMap(lambda found: stages.keys_of(found, tasks))
        crossing = keys.partitionBy(tasks, int).mapPartitions(stages.crossing)
        return self._keep(crossing.partitionBy(count, int))

    def _indexed(self) -> RDD[Indexed]:
        """Read the headers of all ranges, some again, until all are proven."""
        ranges = list(self._job.ranges)
        seen: dict[int, Seen] = {}
        whole: RDD[Indexed] = self._context.emptyRDD()
        again = list(self._job.ranges)
        while again:
            for each in again:
                ranges[each.number] = each
            job = replace(self._job, ranges=ranges)
            numbers = [each.number for each in again]
            found = self._keep(self._context.parallelize(numbers, len(numbers)).map(job.index))
            seen.update((each.number, each) for each in found.map(stages.seen_of).collect())
            whole = _without(whole, numbers).union(found)
            again = prove(self._job.ranges, seen)
        placed = made_whole(proven(self._job.ranges, seen), seen)
        self._job = replace(self._job, ranges=placed)
        whole = _without(whole, [each.number for each in placed if each.is_empty])
        more = [Indexed(seen[each.number], rows) for each in placed for rows in index_whole([each])]
        return whole.union(self._context.parallelize(more, 1)) if more else whole

    def _dissected(self, crossing: RDD[tuple[int, Keys]], parts: int) -> RDD[Note]:
        """Dissect ranges, then parts; return what they tell."""
        travels = crossing.map(stages.carried).sum()
        if travels:
            self._job = replace(self._job, parts=parts or self._rounds(travels, PART_BYTES))
        self._say("dissecting")
        notes = self._told(crossing.mapPartitionsWithIndex(self._job.dissect))
        if not travels:
            return notes
        self._say("dissecting what crosses files and ranges")
        parcels = notes.flatMap(stages.parcels).partitionBy(self._job.parts, int)
        return notes.union(self._told(parcels.mapPartitionsWithIndex(self._job.gather)))

    def _told(self, notes: RDD[Note]) -> RDD[Note]:
        """Run what tells notes; learn names."""
        notes = self._keep(notes)
        self._names += notes.filter(stages.are_names).collect()
        return notes

    def _numbered(self, left: RDD[Left]) -> RDD[Begun]:
        """Return the connections of tasks, by their first packets, and their numbers."""
        homes = left.flatMap(self._job.homes)
        begun = dict(homes.map(stages.count_of).reduceByKey(add, self._tasks, int).collect())
        counts = [begun.get(home, 0) for home in range(len(self._job.ranges))]
        numbering = Numbering(list(accumulate(counts, initial=0)))
        return homes.partitionBy(self._tasks, int).mapPartitions(numbering.number)

    def _written(self, left: RDD[Left], numbered: RDD[Begun], groups: int) -> dict[str, int]:
        """Write all rows; each group of tasks makes a file for each day and API."""
        tasks = (
            left.union(numbered).keyBy(lambda each: each.source % groups).partitionBy(groups, int)
        )
        rows = dict.fromkeys((each for each in SCHEMAS if each in self._job.wanted.tables), 0)
        for table, count in tasks.mapPartitionsWithIndex(self._job.finish).collect():
            rows[table] += count
        return rows

    def _rounds(self, size: int, each: int) -> int:
        """Return into how many tasks so many bytes are divided, so that no core is left over."""
        cores = self._context.defaultParallelism
        return max(1, -(-size // (cores * each))) * cores

    def _keep(self, told: RDD[Item]) -> RDD[Item]:
        """Keep what tasks told, so that they are not run again for each question."""
        self._kept.append(told.persist(StorageLevel.MEMORY_AND_DISK))
        return told


def _without(found: RDD[Indexed], numbers: list[int]) -> RDD[Indexed]:
    return found.filter(lambda each: each.seen.number not in numbers) if numbers else found
