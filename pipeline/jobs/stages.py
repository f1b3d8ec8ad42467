"""
The stages of a job: functions from a task's input to its results.

    index        range -> its scan, and its connections
    crossing     connections of ranges -> those that are in more than one
    dissect      range -> rows of the connections that lie in it, shards of the others
    gather       part -> rows of connections that cross ranges, from all their shards
    again        part -> the same, from the captures: see `Carried.parts_to_read_again`
    number       first packets -> numbers of connections
    finish       range or part -> its rows with those numbers and with names, as Parquet

Rows of tables and shards are written to files (`task_spill`); results only hold their locations.
Shuffled results carry the number of the receiving task.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from dissector.capture.columns import Int64s, unique
from dissector.engine.reading.packet_files import FileNames
from pipeline.jobs.crossing_keys import RangeKeys
from pipeline.jobs.worker import begin_task
from pipeline.split import connection_index as indexing
from pipeline.split.byte_ranges import Range
from pipeline.split.connection_index import RangeIndex
from pipeline.split.connection_keys import parts_of
from pipeline.split.task_spill import (
    BlockLocation,
    TaskOutputWriter,
    in_larger_batches,
    read_rows,
    read_shards,
)
from pipeline.storage.parquet_store import TableWriter
from pipeline.storage.shared_folder import require_mark
from pipeline.tables.dissect_task import (
    SHARDS,
    UNREAD,
    dissect_again,
    dissect_range,
    dissect_shards,
)
from pipeline.tables.finalize import RowFinisher
from pipeline.tables.incremental import FIRST_PACKETS
from pipeline.tables.shared_facts import first_facts, merge_facts, split_doubts
from pipeline.tables.table_builder import FACTS, Batch, TableOptions
from pipeline.tables.whole_tables import whole_tables

DOUBTS = "doubts"
"""The table of a task's own doubts: one for each connection of a kind, so only it reads them."""


@dataclass(frozen=True, slots=True)
class TaskOutput:
    """
    The output of a task, or of the connections that begin in one range.

    Attributes:
        source: The number of the range or part; parts are counted after all ranges.
        tables: The tables that have rows, among them `DOUBTS`.
        first_packets: The first packets of its connections.
        numbers: The numbers of its connections, once assigned.
        unread: Files of which no packet of its range could be read, with the reasons.
    """

    source: int
    tables: Sequence[str]
    first_packets: Int64s
    numbers: Int64s | None = None
    unread: Mapping[str, str] = field(default_factory=dict)


TaskResult: TypeAlias = TaskOutput | pa.RecordBatch
"""The result of a task for the whole collection: its output, or facts."""

TaskReport: TypeAlias = BlockLocation | TaskResult
"""The result of a task: also the location of a shard. Facts are batches of `FACTS_SCHEMA`."""


@dataclass(frozen=True)
class Job:
    """
    Values shared by all tasks of a job.

    For many files they are large, so each process reads them once.

    Attributes:
        ranges: All, by number.
        options: Tables to make, and options of dissection.
        work: The folder for outputs of tasks.
        out: The folder of the tables.
        mark: The driver's mark in the folder of the outputs; see `shared_folder`.
        parts: Number of parts for connections across ranges; 0 if there are none.
        again: Whether the parts read these connections from the captures, not from shards.
        facts: The facts of all parts.
        name: Prefix of the names of the files that are written.
    """

    ranges: Sequence[Range]
    options: TableOptions
    work: str
    out: str
    mark: str
    parts: int = 0
    again: bool = False
    facts: Mapping[str, str] = field(default_factory=dict)
    name: str = ""

    @cached_property
    def files(self) -> FileNames:
        """The file of each packet."""
        names = FileNames()
        for each, after in zip(self.ranges, [*self.ranges[1:], None], strict=True):
            # Skip ranges without packets.
            if after is None or after.first_packet > each.first_packet:
                names.add(each.first_packet, each.path)
        return names

    @cached_property
    def starts(self) -> Int64s:
        """The first packets of ranges."""
        return np.array([each.first_packet for each in self.ranges], np.int64)

    def _begin_task(self) -> None:
        """Prepare the first task of a process for the outputs of this job."""
        begin_task()
        require_mark(self.mark, self.out)

    def index(self, number: int) -> RangeIndex:
        """Read the packet headers of a range."""
        self._begin_task()
        return indexing.index_range(self.ranges[number], self.options.window_bytes)

    def dissect(
        self, number: int, crossing_keys: Iterable[tuple[int, RangeKeys]]
    ) -> Iterator[TaskReport]:
        """Dissect a range; `crossing_keys` are the keys that are in other ranges too."""
        self._begin_task()
        keys = [np.zeros(0, np.int64), *(each.keys for _, each in crossing_keys)]
        crossing = np.sort(np.concatenate(keys))
        byte_range, parts = self.ranges[number], 0 if self.again else self.parts
        batches: Iterable[Batch] = ()
        is_left_to_parts = byte_range.connections == len(crossing) and not byte_range.reassembled
        if not (self.again and is_left_to_parts):
            batches = dissect_range(byte_range, crossing, parts, self.options)
        return self._write_output(number, batches)

    def keys_of_parts(self, crossing: tuple[int, RangeKeys]) -> Iterator[tuple[int, RangeKeys]]:
        """Yield the connections of a range that cross its borders, by their parts."""
        _, each = crossing
        parts = parts_of(each.keys, self.parts)
        for part in unique(parts).tolist():
            of_part = parts == part
            yield part, RangeKeys(each.range, each.keys[of_part], each.bytes[of_part])

    def dissect_again(
        self, part: int, crossing: Iterable[tuple[int, RangeKeys]]
    ) -> Iterator[TaskReport]:
        """Dissect a part from the captures; `crossing` are the keys of its connections."""
        self._begin_task()
        of_ranges = [each for _, each in crossing]
        if of_ranges:
            numbers = sorted({each.range for each in of_ranges})
            keys = unique(np.concatenate([each.keys for each in of_ranges]))
            ranges = [self.ranges[number] for number in numbers]
            # So that windows have the usual number of bytes of these connections.
            window_bytes = self.options.window_bytes * self.parts
            options = replace(self.options, window_bytes=window_bytes)
            batches = dissect_again(ranges, keys, options)
            yield from self._write_output(len(self.ranges) + part, batches)

    def part_of(self, report: TaskReport) -> int:
        """Return the part that receives a report; only locations need a certain one."""
        if isinstance(report, BlockLocation):
            return report.part
        return report.source % self.parts if isinstance(report, TaskOutput) else 0

    def gather(self, part: int, reports: Iterable[tuple[int, TaskReport]]) -> Iterator[TaskResult]:
        """Dissect a part; `reports` are locations of its shards, and reports to pass on."""
        begin_task()
        locations = []
        for _, report in reports:
            if isinstance(report, BlockLocation):
                locations.append(report)
            else:
                yield report
        if locations:
            locations.sort(key=lambda each: (each.source, each.number))
            shards = read_shards(self.work, locations)
            batches = dissect_shards(shards, self.files, self.options)
            yield from self._write_output(len(self.ranges) + part, batches)

    def _write_output(self, source: int, batches: Iterable[Batch]) -> Iterator[Any]:
        """Write a task's batches to its output; yield reports."""
        first_packets: list[Any] = [np.zeros(0, np.int64)]
        tables, unread, facts = set(), dict[str, str](), first_facts([])
        with TaskOutputWriter(self.work, source) as output:
            for table, batch in batches:
                if table == SHARDS:
                    yield output.write_shard(batch)
                elif table == FACTS:
                    facts = first_facts([facts, batch])
                elif table == UNREAD:
                    both = (batch.column(name).to_pylist() for name in ("path", "reason"))
                    unread = dict(zip(*both, strict=True))
                elif table == FIRST_PACKETS:
                    first_packets.append(batch.column("connection").to_numpy())
                else:
                    tables.add(table)
                    output.write_rows(table, batch)
            shared, doubts = split_doubts(facts)
            if doubts.num_rows:
                tables.add(DOUBTS)
                output.write_rows(DOUBTS, doubts)
        if shared.num_rows:
            yield shared
        yield TaskOutput(source, sorted(tables), np.concatenate(first_packets), unread=unread)

    def by_range(self, result: TaskResult) -> Iterator[tuple[int, TaskResult]]:
        """Yield a task's output by the range in which connections begin; facts with range 0."""
        if not isinstance(result, TaskOutput) or not len(result.first_packets):
            yield 0, result
            return
        first_packets = np.sort(result.first_packets)
        range_numbers = np.searchsorted(self.starts, first_packets, side="right") - 1
        found, starts = np.unique(range_numbers, return_index=True)
        for range_number, packets in zip(
            found.tolist(), np.split(first_packets, starts[1:]), strict=True
        ):
            yield range_number, replace(result, first_packets=packets)

    def make_whole(self) -> Iterator[Written]:
        """Write the tables that only the whole collection gives, made by one task."""
        self._begin_task()
        with self._writer("whole") as writer:
            for table, batch in whole_tables(self.ranges, self.options):
                writer.add(table, batch)
        yield from writer.rows.items()

    def finish(self, group: int, outputs: Iterable[tuple[int, TaskOutput]]) -> Iterator[Written]:
        """Write tables; `outputs` are outputs of some tasks, with the numbers of connections."""
        begin_task()
        by_source = defaultdict(list)
        for _, each in outputs:
            by_source[each.source].append(each)
        with self._writer(f"{group:06d}") as writer:
            for source in sorted(by_source):
                self._finish_source(by_source[source], writer)
        yield from writer.rows.items()

    def _writer(self, name: str) -> TableWriter:
        options = self.options
        return TableWriter(self.out, f"{self.name}{name}", options.file_bytes, options.folders)

    def _finish_source(self, outputs: Sequence[TaskOutput], writer: TableWriter) -> None:
        """Write the output of one task."""
        first_packets = np.concatenate([each.first_packets for each in outputs])
        numbers = np.concatenate([each.numbers for each in outputs])
        order = np.argsort(first_packets)
        secrets, values = self.options.show_secrets, self.options.values
        source, tables = outputs[0].source, {*outputs[0].tables}
        facts = dict(self.facts)
        if DOUBTS in tables:
            facts |= merge_facts(read_rows(self.work, DOUBTS, source))
        finisher = RowFinisher(
            first_packets[order], facts, secrets, numbers[order], values, keeps_codes=True
        )
        for table in sorted(tables - {DOUBTS}):
            for batch in in_larger_batches(read_rows(self.work, table, source)):
                writer.add(table, finisher(table, batch))


Written: TypeAlias = tuple[str, int]
"""A table, and the number of rows written to it."""


def count_by_range(
    results: Iterable[tuple[int, TaskResult]],
) -> Iterator[tuple[int, int] | TaskResult]:
    """Yield the number of connections that begin in each range, facts once, and unread ranges."""
    begin_task()
    counts, facts = Counter[int](), list[pa.RecordBatch]()
    for range_number, result in results:
        if isinstance(result, TaskOutput):
            counts[range_number] += len(result.first_packets)
            if result.unread:
                yield TaskOutput(result.source, (), np.zeros(0, np.int64), unread=result.unread)
        else:
            facts.append(result)
    yield from counts.items()
    yield first_facts(facts)


@dataclass(frozen=True, slots=True)
class Numbering:
    """
    Numbers connections: by their first packets, range after range.

    Attributes:
        before: Number of connections that begin before each range.
    """

    before: Sequence[int]

    def number(self, results: Iterable[tuple[int, TaskResult]]) -> Iterator[TaskOutput]:
        """Number all connections that begin in some ranges."""
        begin_task()
        of_range = defaultdict(list)
        for range_number, result in results:
            if isinstance(result, TaskOutput):
                of_range[range_number].append(result)
        for range_number, outputs in of_range.items():
            first_packets = np.sort(np.concatenate([output.first_packets for output in outputs]))
            for output in outputs:
                numbers = self.before[range_number] + np.searchsorted(
                    first_packets, output.first_packets
                )
                yield replace(output, numbers=numbers)
