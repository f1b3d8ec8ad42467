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

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from dissector.capture.columns import Int64s
from dissector.engine.feed import FileNames
from pipeline import index as indexing
from pipeline.dissect import PARCELS, dissect_parcels, dissect_range
from pipeline.finish import Finish
from pipeline.fold import BEGUN
from pipeline.index import Indexed
from pipeline.ranges import Range, Seen
from pipeline.spool import Leaving, Lies, in_bulk, left_parcels, left_rows
from pipeline.store import Store
from pipeline.tables import NAMES, Batch, Wanted
from pipeline.worker import settle


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
    What a task has left.

    Attributes:
        source: The number of its range, or of its part behind those of all ranges.
        tables: Those that have rows.
        firsts: The first packets of its connections.
    """

    source: int
    tables: Sequence[str]
    firsts: Int64s


@dataclass(frozen=True, slots=True)
class Begun:
    """
    Connections of one task that begin in the same range.

    Attributes:
        source: Who dissected them, as in `Left`.
        firsts: Their first packets.
        numbers: Their numbers, once they have some.
    """

    source: int
    firsts: Int64s
    numbers: Int64s | None = None


Note: TypeAlias = Lies | Left | pa.RecordBatch
"""What a task tells: where a parcel lies, what it has left, or names, as `schemas.NAMES`."""


@dataclass(frozen=True, slots=True)
class Job:
    """
    What all tasks of a job know.

    Attributes:
        ranges: All, by number.
        wanted: What is wanted of them.
        work: The folder for what tasks leave.
        out: The folder of the tables.
        parts: In how many parts connections are dissected that cross ranges.
        names: What is known of topic ids.
        name: The beginning of the names of files that are written.
    """

    ranges: Sequence[Range]
    wanted: Wanted
    work: str
    out: str
    parts: int = 1
    names: Mapping[str, str] = field(default_factory=dict)
    name: str = ""

    @property
    def files(self) -> FileNames:
        """Which file holds a packet."""
        names = FileNames()
        for each, after in zip(self.ranges, [*self.ranges[1:], None], strict=True):
            # What has no packets holds none.
            if after is None or after.first_packet > each.first_packet:
                names.note(each.first_packet, each.path)
        return names

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

    def gather(self, part: int, given: Iterable[tuple[int, Lies]]) -> Iterator[Note]:
        """Dissect a part; given are its parcels, in no order."""
        places = sorted((lies for _, lies in given), key=lambda each: (each.source, each.number))
        if places:
            parcels = left_parcels(self.work, places)
            batches = dissect_parcels(parcels, self.files, self.wanted)
            yield from self._left(len(self.ranges) + part, batches)

    def _left(self, source: int, batches: Iterable[Batch]) -> Iterator[Note]:
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

    def homes(self, left: Left) -> Iterator[tuple[int, Begun]]:
        """Yield the connections of a task by the ranges in which they begin."""
        starts = np.array([each.first_packet for each in self.ranges], np.int64)
        firsts = np.sort(left.firsts)
        homes = np.searchsorted(starts, firsts, side="right") - 1
        found, at = np.unique(homes, return_index=True)
        for home, these in zip(found.tolist(), np.split(firsts, at[1:]), strict=False):
            yield home, Begun(left.source, these)

    def finish(self, group: int, given: Iterable[tuple[int, Left | Begun]]) -> Iterator[Written]:
        """Write tables; given is what some tasks have left, and the numbers of connections."""
        left, begun = [], defaultdict(list)
        for _, each in given:
            if isinstance(each, Left):
                left.append(each)
            else:
                begun[each.source].append(each)
        with Store(self.out, f"{self.name}{group:06d}") as store:
            for of_task in sorted(left, key=lambda each: each.source):
                self._finish(of_task, begun[of_task.source], store)
        yield from store.rows.items()

    def _finish(self, left: Left, begun: Iterable[Begun], store: Store) -> None:
        """Write what one task has left."""
        none = np.zeros(0, np.int64)
        firsts = np.concatenate([none, *(each.firsts for each in begun)])
        numbers = np.concatenate([none, *(each.numbers for each in begun)])
        order = np.argsort(firsts)
        secrets = self.wanted.show_secrets
        finish = Finish(firsts[order], self.names, secrets, numbers[order])
        for table in left.tables:
            for batch in in_bulk(left_rows(self.work, table, left.source)):
                store.add(table, finish(table, batch))


Written: TypeAlias = tuple[str, int]
"""A table, and how many rows of it were written."""


def seen_of(found: Indexed) -> Seen:
    """Return how a range was found to be."""
    return found.seen


def keys_of(found: Indexed, tasks: int) -> Iterator[tuple[int, Keys]]:
    """Yield the connections of a range, divided among so many tasks."""
    number, key, carried = (found.rows.column(name) for name in ("range", "key", "bytes"))
    keys, carried = np.asarray(key), np.asarray(carried)
    to = keys % tasks
    for task in np.unique(to).tolist():
        mine = to == task
        yield task, Keys(number[0].as_py(), keys[mine], carried[mine])


def crossing(given: Iterable[tuple[int, Keys]]) -> Iterator[tuple[int, Keys]]:
    """Yield the connections that are in more than one range, by their ranges."""
    ranges = [each for _, each in given]
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


def parcels(note: Note) -> Iterator[tuple[int, Lies]]:
    """Yield where a parcel lies, by its part, if a note tells that."""
    if isinstance(note, Lies):
        yield note.part, note


def left_in(note: Note) -> Iterator[Left]:
    """Yield what a task has left, if a note tells that."""
    if isinstance(note, Left):
        yield note


def are_names(note: Note) -> bool:
    """Tell whether a note has names."""
    return isinstance(note, pa.RecordBatch)


def count_of(home: tuple[int, Begun]) -> tuple[int, int]:
    """Return how many connections begin in a range."""
    return home[0], len(home[1].firsts)


@dataclass(frozen=True, slots=True)
class Numbering:
    """
    Numbers connections: by their first packets, range after range.

    Attributes:
        before: How many connections begin in the ranges before each.
    """

    before: Sequence[int]

    def number(self, given: Iterable[tuple[int, Begun]]) -> Iterator[Begun]:
        """Number all connections that begin in some ranges."""
        of_range = defaultdict(list)
        for home, begun in given:
            of_range[home].append(begun)
        for home, here in of_range.items():
            firsts = np.sort(np.concatenate([each.firsts for each in here]))
            for each in here:
                numbers = self.before[home] + np.searchsorted(firsts, each.firsts)
                yield Begun(each.source, each.firsts, numbers)
