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
from pipeline.jobs.worker import settle
from pipeline.split import connection_index as indexing
from pipeline.split.byte_ranges import Range, Seen
from pipeline.split.connection_index import Indexed
from pipeline.split.task_spill import Leaving, Lies, in_bulk, left_parcels, left_rows
from pipeline.storage.parquet_store import Store
from pipeline.tables.dissect_task import PARCELS, dissect_parcels, dissect_range
from pipeline.tables.finalize import Finish
from pipeline.tables.incremental import BEGUN
from pipeline.tables.table_builder import NAMES, Batch, Wanted


@dataclass(frozen=True, slots=True)
class Keys:
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
class Left:
    """
    What a task has left; or this, with those of its connections that begin in one range.

    Attributes:
        source: The number of its range, or of its part behind those of all ranges.
        tables: Those that have rows.
        firsts: The first packets of its connections.
        numbers: Their numbers, once they have some.
    """

    source: int
    tables: Sequence[str]
    firsts: Int64s
    numbers: Int64s | None = None


Told: TypeAlias = Left | pa.RecordBatch
"""What a task tells that the whole collection is asked for: what it has left, or names."""

Note: TypeAlias = Lies | Told
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
                names.note(each.first_packet, each.path)
        return names

    @cached_property
    def starts(self) -> Int64s:
        """The first packets of ranges."""
        return np.array([each.first_packet for each in self.ranges], np.int64)

    def index(self, number: int) -> Indexed:
        """Read the headers of a range."""
        settle()
        return indexing.index(self.ranges[number], self.wanted.window_bytes)

    def dissect(self, number: int, given: Iterable[tuple[int, Keys]]) -> Iterator[Note]:
        """Dissect a range; given are the keys that are in others too."""
        settle()
        keys = [np.zeros(0, np.int64), *(each.keys for _, each in given)]
        crossing = np.sort(np.concatenate(keys))
        each = self.ranges[number]
        return self._left(number, dissect_range(each, crossing, max(self.parts, 1), self.wanted))

    def part_of(self, note: Note) -> int:
        """Return the part that a note goes to, which passes on what is no parcel."""
        if isinstance(note, Lies):
            return note.part
        return note.source % self.parts if isinstance(note, Left) else 0

    def gather(self, part: int, given: Iterable[tuple[int, Note]]) -> Iterator[Told]:
        """Dissect a part; given are its parcels, in no order, and what is to be passed on."""
        settle()
        places = []
        for _, note in given:
            if isinstance(note, Lies):
                places.append(note)
            else:
                yield note
        if places:
            places.sort(key=lambda each: (each.source, each.number))
            parcels = left_parcels(self.work, places)
            batches = dissect_parcels(parcels, self.files, self.wanted)
            yield from self._left(len(self.ranges) + part, batches)

    def _left(self, source: int, batches: Iterable[Batch]) -> Iterator[Any]:
        """Leave what a task made, and tell of it."""
        firsts: list[Any] = [np.zeros(0, np.int64)]
        tables = set()
        with Leaving(self.work, source) as leaving:
            for table, batch in batches:
                if table == PARCELS:
                    yield leaving.parcel(batch)
                elif table == NAMES:
                    yield batch
                elif table == BEGUN:
                    firsts.append(batch.column("connection").to_numpy())
                else:
                    tables.add(table)
                    leaving.rows(table, batch)
        yield Left(source, sorted(tables), np.concatenate(firsts))

    def homes(self, told: Told) -> Iterator[tuple[int, Told]]:
        """Yield what a task has left by the ranges in which its connections begin; and names."""
        if not isinstance(told, Left) or not len(told.firsts):
            yield 0, told
            return
        firsts = np.sort(told.firsts)
        homes = np.searchsorted(self.starts, firsts, side="right") - 1
        found, at = np.unique(homes, return_index=True)
        for home, these in zip(found.tolist(), np.split(firsts, at[1:]), strict=True):
            yield home, replace(told, firsts=these)

    def finish(self, group: int, given: Iterable[tuple[int, Left]]) -> Iterator[Written]:
        """Write tables; given is what some tasks have left, with the numbers of connections."""
        settle()
        left = defaultdict(list)
        for _, each in given:
            left[each.source].append(each)
        with Store(self.out, f"{self.name}{group:06d}") as store:
            for source in sorted(left):
                self._finish(left[source], store)
        yield from store.rows.items()

    def _finish(self, left: Sequence[Left], store: Store) -> None:
        """Write what one task has left."""
        firsts = np.concatenate([each.firsts for each in left])
        numbers = np.concatenate([each.numbers for each in left])
        order = np.argsort(firsts)
        secrets = self.wanted.show_secrets
        finish = Finish(firsts[order], self.names, secrets, numbers[order])
        for table in left[0].tables:
            for batch in in_bulk(left_rows(self.work, table, left[0].source)):
                store.add(table, finish(table, batch))


Written: TypeAlias = tuple[str, int]
"""A table, and how many rows of it were written."""


def told_by(found: Indexed, tasks: int) -> Iterator[tuple[int, Seen | Keys]]:
    """Yield how a range was found to be, and its connections, divided among so many tasks."""
    yield found.seen.number % tasks, found.seen
    yield from keys_of(found.rows, tasks)


def keys_of(rows: pa.RecordBatch, tasks: int) -> Iterator[tuple[int, Keys]]:
    """Yield the connections of a range, which are rows of the index, divided among tasks."""
    number, key, carried = (rows.column(name) for name in ("range", "key", "bytes"))
    keys, carried = np.asarray(key), np.asarray(carried)
    to = keys % tasks
    for task in np.unique(to).tolist():
        mine = to == task
        yield task, Keys(number[0].as_py(), keys[mine], carried[mine])


def range_of(told: tuple[int, Seen | Keys]) -> int:
    """Return of which range something is told."""
    each = told[1]
    return each.number if isinstance(each, Seen) else each.range


def seen_in(given: Iterable[tuple[int, Seen | Keys]]) -> Iterator[Seen]:
    """Yield how ranges were found to be."""
    settle()
    return (each for _, each in given if isinstance(each, Seen))


def crossing(given: Iterable[tuple[int, Seen | Keys]]) -> Iterator[tuple[int, Keys]]:
    """Yield the connections that are in more than one range, by their ranges."""
    settle()
    ranges = [each for _, each in given if isinstance(each, Keys)]
    keys = np.concatenate([np.zeros(0, np.int64), *(each.keys for each in ranges)])
    found, count = np.unique(keys, return_counts=True)
    more = found[count > 1]
    for each in ranges:
        here = np.isin(each.keys, more)
        if here.any():
            yield each.range, Keys(each.range, each.keys[here], each.bytes[here])


def carried(crossing: tuple[int, Keys]) -> int:
    """Return how many bytes of a range travel; at least one where any connection does."""
    return int(crossing[1].bytes.sum()) or 1


def counted(given: Iterable[tuple[int, Told]]) -> Iterator[tuple[int, int] | pa.RecordBatch]:
    """Yield how many connections begin in each of some ranges; and names."""
    settle()
    counts = Counter[int]()
    for home, told in given:
        if isinstance(told, Left):
            counts[home] += len(told.firsts)
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

    def number(self, given: Iterable[tuple[int, Told]]) -> Iterator[Left]:
        """Number all connections that begin in some ranges."""
        settle()
        of_range = defaultdict(list)
        for home, told in given:
            if isinstance(told, Left):
                of_range[home].append(told)
        for home, here in of_range.items():
            firsts = np.sort(np.concatenate([each.firsts for each in here]))
            for each in here:
                numbers = self.before[home] + np.searchsorted(firsts, each.firsts)
                yield replace(each, numbers=numbers)
