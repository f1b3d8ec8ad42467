"""
What the tasks of a job do: functions from what a task is given to what it tells.

    index        range -> its connections, and how it was found to be
    crossing     connections of ranges -> those that are in more than one
    dissect      range -> rows of the connections that lie in it, parcels of the others
    gather       part -> rows of connections that cross ranges, from all their parcels
    number       first packets -> numbers of connections
    finish       range or part -> its rows with those numbers and with names, as Parquet

Rows of tables and parcels are left in files (`spool`); what is told says only what is where. What
is to be shuffled is told with the number of the task that it goes to.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from dissector.capture.columns import Int64s
from dissector.engine.reading.segment_source import FileNames
from pipeline.jobs.worker import freeze_garbage
from pipeline.split import connection_index as indexing
from pipeline.split.byte_ranges import Range, RangeScan
from pipeline.split.connection_index import RangeIndex
from pipeline.split.task_spill import (
    BlockLocation,
    TaskOutputWriter,
    in_larger_batches,
    read_rows,
    read_shards,
)
from pipeline.storage.parquet_store import TableWriter
from pipeline.tables.dissect_task import SHARDS, dissect_range, dissect_shards
from pipeline.tables.finalize import RowFinisher
from pipeline.tables.incremental import FIRST_PACKETS
from pipeline.tables.table_builder import FACTS, Batch, Wanted


@dataclass(frozen=True, slots=True)
class RangeKeys:
    """
    Connections of one range.

    Attributes:
        range: Its number.
        keys: Theirs; see `keys`.
        bytes: How many each of them carries there.
    """

    range: int
    keys: Int64s
    bytes: Int64s


@dataclass(frozen=True, slots=True)
class TaskOutput:
    """
    What a task has left; or this, with those of its connections that begin in one range.

    Attributes:
        source: The number of its range, or of its part behind those of all ranges.
        tables: Those that have rows.
        first_packets: The first packets of its connections.
        numbers: Their numbers, once they have some.
    """

    source: int
    tables: Sequence[str]
    first_packets: Int64s
    numbers: Int64s | None = None


TaskResult: TypeAlias = TaskOutput | pa.RecordBatch
"""What a task tells that the whole collection is asked for: what it has left, or names."""

TaskReport: TypeAlias = BlockLocation | TaskResult
"""What a task tells: where a parcel lies besides. Names are as in `schemas.NAMES`."""


@dataclass(frozen=True)
class Job:
    """
    What all tasks of a job know; of many files that is much, which a process reads once.

    Attributes:
        ranges: All, by number.
        wanted: What is wanted of them.
        work: The folder for what tasks leave.
        out: The folder of the tables.
        parts: In how many parts connections are dissected that cross ranges; 0: there are none.
        names: What is known of topic ids.
        name: The beginning of the names of files that are written.
    """

    ranges: Sequence[Range]
    wanted: Wanted
    work: str
    out: str
    parts: int = 0
    names: Mapping[str, str] = field(default_factory=dict)
    name: str = ""

    @cached_property
    def files(self) -> FileNames:
        """Which file holds a packet."""
        names = FileNames()
        for each, after in zip(self.ranges, [*self.ranges[1:], None], strict=True):
            # What has no packets holds none.
            if after is None or after.first_packet > each.first_packet:
                names.add(each.first_packet, each.path)
        return names

    @cached_property
    def starts(self) -> Int64s:
        """The first packets of ranges."""
        return np.array([each.first_packet for each in self.ranges], np.int64)

    def index(self, number: int) -> RangeIndex:
        """Read the headers of a range."""
        freeze_garbage()
        return indexing.index_range(self.ranges[number], self.wanted.window_bytes)

    def dissect(self, number: int, given: Iterable[tuple[int, RangeKeys]]) -> Iterator[TaskReport]:
        """Dissect a range; given are the keys that are in others too."""
        freeze_garbage()
        keys = [np.zeros(0, np.int64), *(each.keys for _, each in given)]
        crossing = np.sort(np.concatenate(keys))
        each = self.ranges[number]
        return self._left(number, dissect_range(each, crossing, max(self.parts, 1), self.wanted))

    def part_of(self, note: TaskReport) -> int:
        """Return the part that a note goes to, which passes on what is no parcel."""
        if isinstance(note, BlockLocation):
            return note.part
        return note.source % self.parts if isinstance(note, TaskOutput) else 0

    def gather(self, part: int, given: Iterable[tuple[int, TaskReport]]) -> Iterator[TaskResult]:
        """Dissect a part; given are its parcels, in no order, and what is to be passed on."""
        freeze_garbage()
        places = []
        for _, note in given:
            if isinstance(note, BlockLocation):
                places.append(note)
            else:
                yield note
        if places:
            places.sort(key=lambda each: (each.source, each.number))
            parcels = read_shards(self.work, places)
            batches = dissect_shards(parcels, self.files, self.wanted)
            yield from self._left(len(self.ranges) + part, batches)

    def _left(self, source: int, batches: Iterable[Batch]) -> Iterator[Any]:
        """Leave what a task made, and tell of it."""
        firsts: list[Any] = [np.zeros(0, np.int64)]
        tables = set()
        with TaskOutputWriter(self.work, source) as leaving:
            for table, batch in batches:
                if table == SHARDS:
                    yield leaving.write_shard(batch)
                elif table == FACTS:
                    yield batch
                elif table == FIRST_PACKETS:
                    firsts.append(batch.column("connection").to_numpy())
                else:
                    tables.add(table)
                    leaving.write_rows(table, batch)
        yield TaskOutput(source, sorted(tables), np.concatenate(firsts))

    def by_range(self, told: TaskResult) -> Iterator[tuple[int, TaskResult]]:
        """Yield what a task has left by the ranges in which its connections begin; and names."""
        if not isinstance(told, TaskOutput) or not len(told.first_packets):
            yield 0, told
            return
        firsts = np.sort(told.first_packets)
        homes = np.searchsorted(self.starts, firsts, side="right") - 1
        found, at = np.unique(homes, return_index=True)
        for home, these in zip(found.tolist(), np.split(firsts, at[1:]), strict=True):
            yield home, replace(told, first_packets=these)

    def finish(self, group: int, given: Iterable[tuple[int, TaskOutput]]) -> Iterator[Written]:
        """Write tables; given is what some tasks have left, with the numbers of connections."""
        freeze_garbage()
        left = defaultdict(list)
        for _, each in given:
            left[each.source].append(each)
        with TableWriter(self.out, f"{self.name}{group:06d}") as store:
            for source in sorted(left):
                self._finish(left[source], store)
        yield from store.rows.items()

    def _finish(self, left: Sequence[TaskOutput], store: TableWriter) -> None:
        """Write what one task has left."""
        firsts = np.concatenate([each.first_packets for each in left])
        numbers = np.concatenate([each.numbers for each in left])
        order = np.argsort(firsts)
        secrets = self.wanted.show_secrets
        finish = RowFinisher(firsts[order], self.names, secrets, numbers[order])
        for table in left[0].tables:
            for batch in in_larger_batches(read_rows(self.work, table, left[0].source)):
                store.add(table, finish(table, batch))


Written: TypeAlias = tuple[str, int]
"""A table, and how many rows of it were written."""


def index_results(found: RangeIndex, tasks: int) -> Iterator[tuple[int, RangeScan | RangeKeys]]:
    """Yield how a range was found to be, and its connections, divided among so many tasks."""
    yield found.scan.number % tasks, found.scan
    yield from split_keys(found.rows, tasks)


def split_keys(rows: pa.RecordBatch, tasks: int) -> Iterator[tuple[int, RangeKeys]]:
    """Yield the connections of a range, which are rows of the index, divided among tasks."""
    number, key, carried = (rows.column(name) for name in ("range", "key", "bytes"))
    keys, carried = np.asarray(key), np.asarray(carried)
    to = keys % tasks
    for task in np.unique(to).tolist():
        mine = to == task
        yield task, RangeKeys(number[0].as_py(), keys[mine], carried[mine])


def range_of(told: tuple[int, RangeScan | RangeKeys]) -> int:
    """Return of which range something is told."""
    each = told[1]
    return each.number if isinstance(each, RangeScan) else each.range


def scans_in(given: Iterable[tuple[int, RangeScan | RangeKeys]]) -> Iterator[RangeScan]:
    """Yield how ranges were found to be."""
    freeze_garbage()
    return (each for _, each in given if isinstance(each, RangeScan))


def crossing(given: Iterable[tuple[int, RangeScan | RangeKeys]]) -> Iterator[tuple[int, RangeKeys]]:
    """Yield the connections that are in more than one range, by their ranges."""
    freeze_garbage()
    ranges = [each for _, each in given if isinstance(each, RangeKeys)]
    keys = np.concatenate([np.zeros(0, np.int64), *(each.keys for each in ranges)])
    found, count = np.unique(keys, return_counts=True)
    more = found[count > 1]
    for each in ranges:
        here = np.isin(each.keys, more)
        if here.any():
            yield each.range, RangeKeys(each.range, each.keys[here], each.bytes[here])


def carried_bytes(crossing: tuple[int, RangeKeys]) -> int:
    """Return how many bytes of a range travel; at least one where any connection does."""
    return int(crossing[1].bytes.sum()) or 1


def count_by_range(
    given: Iterable[tuple[int, TaskResult]],
) -> Iterator[tuple[int, int] | pa.RecordBatch]:
    """Yield how many connections begin in each of some ranges; and names."""
    freeze_garbage()
    counts = Counter[int]()
    for home, told in given:
        if isinstance(told, TaskOutput):
            counts[home] += len(told.first_packets)
        else:
            yield told
    yield from counts.items()


@dataclass(frozen=True, slots=True)
class Numbering:
    """
    Numbers connections: by their first packets, range after range.

    Attributes:
        before: How many connections begin in the ranges before each.
    """

    before: Sequence[int]

    def number(self, given: Iterable[tuple[int, TaskResult]]) -> Iterator[TaskOutput]:
        """Number all connections that begin in some ranges."""
        freeze_garbage()
        of_range = defaultdict(list)
        for home, told in given:
            if isinstance(told, TaskOutput):
                of_range[home].append(told)
        for home, here in of_range.items():
            firsts = np.sort(np.concatenate([each.first_packets for each in here]))
            for each in here:
                numbers = self.before[home] + np.searchsorted(firsts, each.first_packets)
                yield replace(each, numbers=numbers)
