"""
The job: which stage follows which, and what Spark shuffles between them.

The shuffles carry keys, numbers and places of parcels. To the driver come how ranges were found to
be, how many connections begin in each, and the names of topics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812  (as everybody calls it)
from pyspark.sql.pandas.types import from_arrow_schema

from dissector.errors import UsageError
from pipeline.collection import Collection
from pipeline.index import index_whole
from pipeline.loose import made_whole
from pipeline.names import merged
from pipeline.ranges import RANGE_BYTES, Seen, prove, proven, ranges_of
from pipeline.schemas import NAMES, SCHEMAS
from pipeline.stages import (
    HOMES,
    INDEX,
    LEFT,
    NAME,
    NOTES,
    NUMBERS,
    PARCEL,
    WRITTEN,
    Job,
    Numbering,
)
from pipeline.tables import Wanted
from pipeline.writing import has_files, joined, removed

WORK = "_work"
"""The folder beside the tables for what tasks leave; Spark does not look into it."""

PART_BYTES = RANGE_BYTES
"""About how many bytes of connections that cross ranges are dissected together."""

GROUP_BYTES = 1 << 30
"""Of about how many bytes of captures the rows are written by one task."""

Say = Callable[[str], None]

Stage = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


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
    groups = max(spark.sparkContext.defaultParallelism, -(-size // GROUP_BYTES))
    try:
        with _Run(spark, job, request.parts, groups, say) as run:
            return run.rows()
    finally:
        removed(work)


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
    for table in (*SCHEMAS, WORK, "_checkpoint", "_names", "_numbers", "summaries"):
        removed(joined(out, table))


class _Run:
    """One job under way."""

    def __init__(self, spark: SparkSession, job: Job, parts: int, groups: int, say: Say) -> None:
        """Begin; `groups` is how many tasks write tables, each a file for each day and API."""
        self._spark = spark
        self._job = job
        self._parts = parts
        self._groups = groups
        self._say = say
        self._kept: list[DataFrame] = []

    def __enter__(self) -> _Run:
        return self

    def __exit__(self, *error: object) -> None:
        for rows in self._kept:
            rows.unpersist()

    def rows(self) -> dict[str, int]:
        """Run all stages."""
        count = len(self._job.ranges)
        if count == 1:
            tasks = self._ranges(self._all_ranges().select("range", F.lit(None).alias("keys")), 1)
            return self._dissected(tasks)
        self._say("reading headers")
        crossing = self._keep(_crossing(self._indexed()))
        self._job = replace(self._job, parts=self._parts or self._parts_for(crossing))
        keys = self._all_ranges().withColumn("key", F.lit(None).cast("long"))
        keys = keys.unionByName(crossing.select("range", "key"))
        tasks = keys.groupBy("range").agg(F.collect_set("key").alias("keys"))
        return self._dissected(self._ranges(tasks, count))

    def _all_ranges(self) -> DataFrame:
        count = len(self._job.ranges)
        return self._spark.range(0, count, 1, 1).select(F.col("id").cast("int").alias("range"))

    def _ranges(self, rows: DataFrame, count: int) -> DataFrame:
        """Give each range a task of its own."""
        return rows.repartitionById(count, F.col("range"))

    def _indexed(self) -> DataFrame:
        """Read the headers of all ranges, some again, until all are proven; return their keys."""
        ranges = list(self._job.ranges)
        seen: dict[int, Seen] = {}
        whole: DataFrame | None = None
        again = list(self._job.ranges)
        while again:
            for each in again:
                ranges[each.number] = each
            numbers = [each.number for each in again]
            tasks = self._all_ranges().where(F.col("range").isin(numbers))
            job = replace(self._job, ranges=ranges)
            rows = self._keep(_mapped(self._ranges(tasks, len(ranges)), job.index, INDEX))
            for row in rows.where("key is null").drop("key", "segments", "bytes").collect():
                found = row.asDict()
                seen[row["range"]] = Seen(found.pop("range"), **found)
            whole = rows if whole is None else _without(whole, numbers).unionByName(rows)
            again = prove(self._job.ranges, seen)
        assert whole is not None
        placed = made_whole(proven(self._job.ranges, seen), seen)
        self._job = replace(self._job, ranges=placed)
        keys = _without(whole, [each.number for each in placed if each.is_empty])
        more = list(index_whole(placed))
        if more:
            rows = self._spark.createDataFrame(pa.Table.from_batches(more))
            keys = keys.unionByName(rows, allowMissingColumns=True)
        return keys

    def _parts_for(self, crossing: DataFrame) -> int:
        payload = crossing.agg(F.sum("bytes")).collect()[0][0] or 0
        return max(self._spark.sparkContext.defaultParallelism, -(-payload // PART_BYTES))

    def _dissected(self, tasks: DataFrame) -> dict[str, int]:
        """Dissect ranges, then parts; number their connections, and write their rows."""
        self._say("dissecting")
        notes = self._keep(_mapped(tasks, self._job.dissect, NOTES))
        parcels = notes.where(F.col("kind") == PARCEL)
        names = [row["part"] for row in parcels.select("part").distinct().collect()]
        if names:
            self._say("dissecting what crosses files and ranges")
            order = ("part", "source", "number")
            parts = parcels.repartitionById(self._job.parts, F.col("part"))
            gathered = _mapped(parts.sortWithinPartitions(*order), self._job.gather, NOTES)
            notes = notes.unionByName(self._keep(gathered))
        self._say("numbering connections")
        left = notes.where(F.col("kind") == LEFT).select("source", "tables", "firsts")
        numbers = self._numbers(left)
        self._job = replace(self._job, names=_names(notes))
        self._say("writing tables")
        tasks = left.select("source", "tables").join(numbers, "source", "left")
        tasks = tasks.withColumn("group", F.col("source") % self._groups)
        tasks = tasks.repartitionById(self._groups, F.col("group")).sortWithinPartitions("source")
        counts = _mapped(tasks, self._job.finish, WRITTEN).groupBy("table").agg(F.sum("rows"))
        found = {row[0]: row[1] for row in counts.collect()}
        return {table: found.get(table, 0) for table in SCHEMAS if table in self._job.wanted.tables}

    def _numbers(self, left: DataFrame) -> DataFrame:
        """Return for each task its connections, by their first packets, and their numbers."""
        homes = self._keep(_mapped(left, self._job.homes, HOMES))
        begun = {row[0]: row[1] for row in homes.groupBy("home").count().collect()}
        counts = [begun.get(home, 0) for home in range(len(self._job.ranges))]
        before = list(accumulate(counts, initial=0))
        placed = homes.repartition(F.col("home"))
        numbers = placed.mapInArrow(Numbering(before).number, from_arrow_schema(NUMBERS))
        pair = F.collect_list(F.struct("first", "connection"))
        pairs = numbers.groupBy("source").agg(pair.alias("pairs"))
        return pairs.select("source", "pairs.first", "pairs.connection")

    def _keep(self, rows: DataFrame) -> DataFrame:
        """Keep what tasks told, so that they are not run again for each question."""
        rows = rows.persist(StorageLevel.MEMORY_AND_DISK)
        self._kept.append(rows)
        return rows


def _mapped(tasks: DataFrame, stage: Stage, schema: pa.Schema) -> DataFrame:
    return tasks.mapInArrow(stage, from_arrow_schema(schema))


def _without(rows: DataFrame, numbers: list[int]) -> DataFrame:
    return rows.where(~F.col("range").isin(numbers)) if numbers else rows


def _crossing(index: DataFrame) -> DataFrame:
    """Return the keys that are in more than one range, with those ranges."""
    ranges = F.count("*").over(Window.partitionBy("key"))
    keys = index.withColumn("ranges", ranges)
    return keys.where("ranges > 1").select("range", "key", "bytes")


def _names(notes: DataFrame) -> dict[str, str]:
    rows = notes.where(F.col("kind") == NAME).select(*NAMES.names).collect()
    return merged([pa.RecordBatch.from_pylist([row.asDict() for row in rows], schema=NAMES)])
