"""
The job: the order of its stages, and what Spark shuffles between them.

The shuffles carry keys, numbers and locations of shards: few and small; RDDs of them take a tenth
of the planning time of DataFrames. The driver collects the scans of ranges, the number of
connections that begin in each, the names of topics, the addresses of brokers, and the number of
rows written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from itertools import accumulate
from math import isqrt
from typing import TypeAlias

import pyarrow as pa
from pyspark import RDD, Broadcast, SparkContext
from pyspark.sql import SparkSession

from pipeline.jobs import stages
from pipeline.jobs.crossing_keys import (
    Carried,
    RangeKeys,
    carried_by,
    crossing_among,
    index_results,
    range_of,
    scans_in,
    split_keys,
)
from pipeline.jobs.job_state import (
    WORK,
    JobState,
    Made,
    check_request,
    clear_tables,
    complete_tables,
    mark_success,
    require_replaceable,
)
from pipeline.jobs.lakehouse import PARQUET, convert, require_format
from pipeline.jobs.request import Request
from pipeline.jobs.stages import Job, Numbering, TaskOutput, TaskResult, Written
from pipeline.jobs.summaries import make_summaries
from pipeline.split.byte_ranges import (
    Range,
    RangeScan,
    misplaced,
    numbered_ranges,
    placed_ranges,
    ranges_of,
)
from pipeline.split.collection import Collection, find_captures
from pipeline.split.connection_index import index_reassembled
from pipeline.split.split_fragments import add_reassembled
from pipeline.split.time_slices import slices_among, with_slices
from pipeline.storage.atomic_files import has_files, join_path, remove_folder
from pipeline.storage.filesystems import absolute
from pipeline.storage.shared_folder import leave_mark
from pipeline.storage.task_attempts import MAX_ATTEMPTS_SETTING
from pipeline.storage.task_results import FOLDER as RESULTS
from pipeline.storage.task_results import kept
from pipeline.tables.shared_facts import merge_facts
from pipeline.tables.table_schemas import SCHEMAS
from pipeline.tables.whole_tables import WHOLE

__all__ = ["Made", "Request", "check_request", "make_tables"]

GROUP_BYTES = 1 << 30
"""Bytes of captures with rows that one task writes."""

ProgressCallback = Callable[[str], None]

IndexResult: TypeAlias = tuple[int, RangeScan | RangeKeys]
"""A result about the headers of a range, and the task that consumes it."""


def make_tables(
    spark: SparkSession, request: Request, on_progress: ProgressCallback = lambda text: None
) -> Made:
    """
    Make the tables of a collection, as Parquet.

    Args:
        spark: A session.
        request: The captures, the output and the options.
        on_progress: Called with the name of each stage.

    Raises:
        UsageError: No captures exist, tables exist already, they are of another job, or Spark can't
            write the format.
        CaptureError: A named capture does not exist, or none of the files is a capture.
    """
    on_progress("looking for captures")
    check_request(request)
    require_format(spark, request.format, request.out)
    collection = find_captures(request.captures)
    context, out = spark.sparkContext, absolute(request.out)
    state = JobState.of(collection, request, context.defaultParallelism)
    begun = state.continuing(out) if request.resume else None
    if begun is None:
        require_replaceable(request)
        clear_tables(out)
        state.save(out)
    made = complete_tables(out)
    if made is None:
        made = _made(context, request, collection, begun or state, on_progress)
        if request.summaries:
            on_progress("making summaries")
            make_summaries(spark, out)
        if request.format != PARQUET:
            on_progress(f"making tables of {request.format}")
            convert(spark, request.format, out, made.rows, request.options.folders)
        mark_success(out, made)
    remove_folder(join_path(out, WORK))
    return made


def _made(
    context: SparkContext,
    request: Request,
    collection: Collection,
    state: JobState,
    on_progress: ProgressCallback,
) -> Made:
    """Run the job; if it fails before a task was complete, leave nothing."""
    out = absolute(request.out)
    work = join_path(out, WORK)
    ranges = ranges_of(
        collection, request.range_bytes, request.options.decode_as, request.options.timezone
    )
    size = sum(each.size for each in collection.files)
    try:
        job = Job(ranges, request.options, work, out, leave_mark(work))
        with _exposed_attempts(context), _Run(context, job, state.cores, on_progress) as run:
            rows = run.rows(request.parts, size)
    except BaseException:
        if not has_files(join_path(work, RESULTS)):
            clear_tables(out)
        raise
    # A folder may hold other files.
    expected = {each.path for each in collection.files if each.is_capture} | {*request.captures}
    return Made(rows, {path: reason for path, reason in run.unread.items() if path in expected})


@contextmanager
def _exposed_attempts(context: SparkContext) -> Iterator[None]:
    """Pass the number of attempts to tasks, for a `with`."""
    context.setLocalProperty(MAX_ATTEMPTS_SETTING, context.getConf().get(MAX_ATTEMPTS_SETTING, "1"))
    try:
        yield
    finally:
        context.setLocalProperty(MAX_ATTEMPTS_SETTING, None)  # type: ignore[arg-type]


def unread_files(
    ranges: Iterable[Range], reasons: Mapping[int, Mapping[str, str]]
) -> dict[str, str]:
    """
    Return the files without a readable packet, with the reasons.

    Args:
        ranges: All ranges of the collection, with their proven starts.
        reasons: Files of which no packet of a range could be read, by the numbers of ranges.
    """
    said: dict[str, list[str]] = {}
    for each in ranges:
        for path in () if each.is_empty else each.paths:
            said.setdefault(path, []).append(reasons.get(each.number, {}).get(path, ""))
    return {path: of_ranges[0] for path, of_ranges in said.items() if all(of_ranges)}


class _Run:
    """A job that runs."""

    def __init__(
        self, context: SparkContext, job: Job, cores: int, on_progress: ProgressCallback
    ) -> None:
        self._context = context
        self._job = job
        self._cores = cores
        self._on_progress = on_progress
        self.unread: dict[str, str] = {}
        """Files without a readable packet, with the reasons."""
        self._shared: list[Broadcast[Job]] = []
        self._tasks = max(context.defaultParallelism, isqrt(len(job.ranges)))
        """Number of tasks for small results of all ranges."""

    def __enter__(self) -> _Run:
        return self

    def __exit__(self, *error: object) -> None:
        for job in self._shared:
            job.destroy()

    def rows(self, parts: int, size: int) -> dict[str, int]:
        """
        Run all stages.

        Args:
            parts: Number of parts for connections across ranges; 0 selects as many as fit.
            size: Size of the captures in bytes.

        Returns:
            Number of rows of each table.
        """
        crossing = self._crossing(parts, size)
        with self._whole() as whole:
            by_range = self._dissected(crossing)
            numbering = self._numbering(by_range)
            self._on_progress("writing tables")
            written = self._written(
                by_range.mapPartitions(numbering.number), self._task_count(size, GROUP_BYTES)
            )
            return written | dict(whole.result())

    @contextmanager
    def _whole(self) -> Iterator[Future[list[Written]]]:
        """Make the tables of the whole collection in one task, beside the others, if requested."""
        nothing: Future[list[Written]] = Future()
        if not WHOLE & self._job.options.tables:
            nothing.set_result([])
            yield nothing
            return
        job = self._share(self._job)
        work = self._job.work
        task = self._context.parallelize([0], 1).mapPartitions(
            lambda each: kept(work, "whole", each, lambda _: job.value.make_whole())
        )
        with ThreadPoolExecutor(1) as pool:
            yield pool.submit(self._collected, task)

    def _collected(self, task: RDD[Written]) -> list[Written]:
        """Run a task in its own thread, with its own properties."""
        with _exposed_attempts(self._context):
            return task.collect()

    def _crossing(self, parts: int, size: int) -> RDD[tuple[int, RangeKeys]]:
        """Return the keys that are in more than one range, by ranges."""
        count = len(self._job.ranges)
        if count == 1:
            return self._context.parallelize([], 1)
        self._on_progress("reading headers")
        crossing = self._indexed().mapPartitions(crossing_among)
        carried = sum(crossing.mapPartitions(carried_by).collect(), Carried())
        if carried.connections:
            again = 0
            if not parts and all(
                each.is_divisible and each.time_slice is None for each in self._job.ranges
            ):
                again = carried.parts_to_read_again(self._cores, size)
            self._job = replace(
                self._job,
                parts=parts or again or carried.parts_of_shards(self._cores),
                again=again > 0,
            )
        return crossing

    def _dissected(self, crossing: RDD[tuple[int, RangeKeys]]) -> RDD[tuple[int, TaskResult]]:
        """Return the outputs of ranges, then of parts, by the range where connections begin."""
        self._on_progress("dissecting")
        job, work = self._share(self._job), self._job.work
        reports = crossing.partitionBy(len(self._job.ranges), int).mapPartitionsWithIndex(
            lambda at, keys: kept(
                work, f"range-{at:06d}", keys, lambda inputs: job.value.dissect(at, inputs)
            )
        )
        if self._job.again:
            by_part = crossing.flatMap(lambda keys: job.value.keys_of_parts(keys))
            again = by_part.partitionBy(self._job.parts, int).mapPartitionsWithIndex(
                lambda at, keys: kept(
                    work, f"part-{at:06d}", keys, lambda inputs: job.value.dissect_again(at, inputs)
                )
            )
            # Parts take longest, so they begin first.
            reports = again.union(reports)
        elif self._job.parts:
            placed = reports.keyBy(lambda report: job.value.part_of(report))
            placed = placed.partitionBy(self._job.parts, int)
            reports = placed.mapPartitionsWithIndex(
                lambda at, shards: kept(
                    work, f"part-{at:06d}", shards, lambda inputs: job.value.gather(at, inputs)
                )
            )
        return reports.flatMap(lambda result: job.value.by_range(result)).partitionBy(
            self._tasks, int
        )

    def _indexed(self) -> RDD[IndexResult]:
        """Scan the headers of all ranges, some again, until all starts are proven."""
        ranges = list(self._job.ranges)
        scans: dict[int, RangeScan] = {}
        found = self._index(ranges, ranges)
        while True:
            scans.update((each.number, each) for each in found.mapPartitions(scans_in).collect())
            misplaced_ranges = misplaced(self._job.ranges, scans)
            if not misplaced_ranges:
                break
            for each in misplaced_ranges:
                ranges[each.number] = each
            found = self._replace_results(
                found, misplaced_ranges, self._index(ranges, misplaced_ranges)
            )
        placed = with_slices(placed_ranges(self._job.ranges, scans), scans)
        slices = slices_among(placed)
        if slices:
            more_found = self._index(placed, slices)
            scans.update(
                (each.number, each) for each in more_found.mapPartitions(scans_in).collect()
            )
            found = self._replace_results(found, slices, more_found)
        placed = add_reassembled(numbered_ranges(placed, scans), scans)
        self._job = replace(self._job, ranges=placed)
        empty = [each for each in placed if each.is_empty]
        more = [
            keys for rows in index_reassembled(placed) for keys in split_keys(rows, self._tasks)
        ]
        if empty or more:
            found = self._replace_results(found, empty, self._context.parallelize(more, 1))
        return found

    def _index(self, ranges: Sequence[Range], to_scan: Sequence[Range]) -> RDD[IndexResult]:
        """Read the headers of these ranges."""
        job, tasks = self._share(replace(self._job, ranges=list(ranges))), self._tasks
        numbers = self._context.parallelize([each.number for each in to_scan], len(to_scan))
        found = numbers.map(lambda number: job.value.index(number))
        return found.flatMap(lambda each: index_results(each, tasks)).partitionBy(tasks, int)

    def _replace_results(
        self, found: RDD[IndexResult], replaced: Sequence[Range], new_results: RDD[IndexResult]
    ) -> RDD[IndexResult]:
        """Return the results of all ranges, with those of `replaced` replaced by `new_results`."""
        numbers = frozenset(each.number for each in replaced)
        others = found.filter(lambda result: range_of(result) not in numbers)
        return others.union(new_results).partitionBy(self._tasks, int)

    def _numbering(self, by_range: RDD[tuple[int, TaskResult]]) -> Numbering:
        """Return the numbering of connections by ranges; merge the facts."""
        results = by_range.mapPartitions(stages.count_by_range).collect()
        counts: dict[int, int] = dict(each for each in results if isinstance(each, tuple))
        facts = [each for each in results if isinstance(each, pa.RecordBatch)]
        outputs = (each for each in results if isinstance(each, TaskOutput))
        reasons = {each.source: each.unread for each in outputs}
        self.unread = unread_files(self._job.ranges, reasons)
        self._job = replace(self._job, facts=merge_facts(facts))
        begun = (counts.get(number, 0) for number in range(len(self._job.ranges)))
        return Numbering(list(accumulate(begun, initial=0)))

    def _written(self, numbered: RDD[TaskOutput], groups: int) -> dict[str, int]:
        """Write all rows; each group of tasks makes a file for each day and API."""
        tasks = numbered.keyBy(lambda each: each.source % groups).partitionBy(groups, int)
        rows = dict.fromkeys((each for each in SCHEMAS if each in self._job.options.tables), 0)
        job, work = self._share(self._job), self._job.work
        written = tasks.mapPartitionsWithIndex(
            lambda at, outputs: kept(
                work, f"group-{at:06d}", outputs, lambda inputs: job.value.finish(at, inputs)
            )
        )
        for table, count in written.collect():
            rows[table] += count
        return rows

    def _task_count(self, size: int, each: int) -> int:
        """Return the number of tasks for this many bytes, a multiple of the number of cores."""
        return max(1, -(-size // (self._cores * each))) * self._cores

    def _share(self, job: Job) -> Broadcast[Job]:
        """Broadcast the shared values: each process reads them once, instead of each task."""
        shared = self._context.broadcast(job)
        self._shared.append(shared)
        return shared
