"""
What the tasks of a job do: functions from batches to batches, as Spark's `mapInArrow` takes them.

    index        range -> its connections, and how it was found to be
    dissect      range -> rows of the connections that lie in it, parcels of the others
    gather       part -> rows of connections that cross ranges, from all their parcels
    number       first packets -> numbers of connections
    finish       range or part -> its rows with those numbers and with names, as Parquet

Rows of tables and parcels are left in files (`spool`); batches say only what is where.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa

from dissector.engine.feed import FileNames
from pipeline import index as indexing
from pipeline.dissect import PARCELS, dissect_parcels, dissect_range
from pipeline.finish import Finish
from pipeline.ranges import Range, Seen
from pipeline.spool import Leaving, Lies, left_parcels, left_rows
from pipeline.store import Store
from pipeline.tables import NAMES, Batch, Wanted

Batches = Iterable[pa.RecordBatch]

INDEX = pa.schema(
    [
        *indexing.SCHEMA,
        ("start", pa.int64()),
        ("stop", pa.int64()),
        ("packets", pa.int64()),
        ("damaged", pa.bool_()),
        ("loose", pa.binary()),
        ("problem", pa.string()),
        ("latest_ns", pa.int64()),
    ]
)
"""A row for each connection of a range; one without a key says how the range was found to be."""

NOTES = pa.schema(
    {
        "kind": pa.string(),
        "source": pa.int32(),
        "part": pa.int32(),
        "number": pa.int32(),
        "offset": pa.int64(),
        "length": pa.int64(),
        "firsts": pa.list_(pa.int64()),
        "tables": pa.list_(pa.string()),
        "topic_id": pa.string(),
        "name": pa.string(),
        "packet": pa.int64(),
    }
)
"""
What a task tells of what it left. `kind` is `parcel`, with where it lies; `left`, with the first
packets of its connections and the tables that have rows; or `name`, of a topic's id.
"""

PARCEL, LEFT, NAME = "parcel", "left", "name"

HOMES = pa.schema({"home": pa.int32(), "source": pa.int32(), "first": pa.int64()})
"""The range in which a connection begins, who dissected it, and its first packet."""

NUMBERS = pa.schema({"source": pa.int32(), "first": pa.int64(), "connection": pa.int64()})
"""Who dissected a connection, its first packet, and its number."""


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

    def index(self, tasks: Batches) -> Iterator[pa.RecordBatch]:
        """Read the headers of ranges, which are named by the first column."""
        for number in _numbers(tasks):
            found = indexing.index(self.ranges[number], self.wanted.window_bytes)
            rows = [*found.rows.columns, *(pa.nulls(len(found.rows), kind) for kind in _SEEN_TYPES)]
            yield pa.RecordBatch.from_arrays(rows, schema=INDEX)
            yield _row(INDEX, range=number, **_said(found.seen))

    def dissect(self, tasks: Batches) -> Iterator[pa.RecordBatch]:
        """Dissect ranges, of which each row names one and the keys that are in others too."""
        for row in _rows(tasks):
            crossing = np.sort(np.array(row["keys"] or (), np.int64))
            each = self.ranges[row["range"]]
            batches = dissect_range(each, crossing, self.parts, self._wanted)
            yield from self._left(each.number, batches)

    def gather(self, tasks: Batches) -> Iterator[pa.RecordBatch]:
        """Dissect parts, of which the rows are their parcels in order."""
        rows = (row for batch in tasks for row in batch.to_pylist())
        for part, of_part in groupby(rows, lambda row: row["part"]):
            places = (
                Lies(part, row["source"], row["number"], row["offset"], row["length"])
                for row in of_part
            )
            number = len(self.ranges) + part
            parcels = left_parcels(self.work, places)
            batches = dissect_parcels(parcels, self.files, self._wanted)
            yield from self._left(number, batches)

    def homes(self, tasks: Batches) -> Iterator[pa.RecordBatch]:
        """Tell of the connections of tasks in which ranges they begin."""
        starts = np.array([each.first_packet for each in self.ranges], np.int64)
        for row in _rows(tasks):
            first = np.array(row["firsts"], np.int64)
            home = np.searchsorted(starts, first, side="right") - 1
            source = np.full(len(first), row["source"])
            columns = [
                pa.array(each, kind)
                for each, kind in zip((home, source, first), HOMES.types, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=HOMES)

    def finish(self, tasks: Batches) -> Iterator[pa.RecordBatch]:
        """Write tables; the rows are the connections of tasks with their numbers, by groups."""
        for group, of_group in groupby(_rows(tasks), lambda row: row["group"]):
            with Store(self.out, f"{self.name}{group:06d}") as store:
                for row in of_group:
                    self._finish(row, store)
            for table, count in store.rows.items():
                yield _row(WRITTEN, table=table, rows=count)

    def _finish(self, row: dict[str, Any], store: Store) -> None:
        """Write what one task has left."""
        firsts = np.array(row["first"] or (), np.int64)
        order = np.argsort(firsts)
        numbers = np.array(row["connection"] or (), np.int64)[order]
        finish = Finish(firsts[order], self.names, self.wanted.show_secrets, numbers)
        for table in sorted(self.wanted.tables & set(row["tables"])):
            for batch in left_rows(self.work, table, row["source"]):
                store.add(table, finish(table, batch))

    @property
    def _wanted(self) -> Wanted:
        # By their connections all parts of a collection are put together.
        return replace(self.wanted, tables=self.wanted.tables | {"connections"})

    def _left(self, source: int, batches: Iterable[Batch]) -> Iterator[pa.RecordBatch]:
        """Leave what a task made, and yield notes of it."""
        firsts: list[Any] = []
        tables = set()
        with Leaving(self.work, source) as leaving:
            for table, batch in batches:
                if table == PARCELS:
                    lies = leaving.parcel(batch)
                    yield _row(
                        NOTES,
                        kind=PARCEL,
                        source=source,
                        part=lies.part,
                        number=lies.number,
                        offset=lies.offset,
                        length=lies.length,
                    )
                elif table == NAMES:
                    for row in batch.to_pylist():
                        yield _row(NOTES, kind=NAME, source=source, **row)
                else:
                    tables.add(table)
                    leaving.rows(table, batch)
                    if table == "connections":
                        firsts.append(batch.column("connection").to_numpy())
        known = np.concatenate(firsts).tolist() if firsts else []
        if tables:
            yield _row(NOTES, kind=LEFT, source=source, firsts=known, tables=sorted(tables))


WRITTEN = pa.schema({"table": pa.string(), "rows": pa.int64()})

_SEEN = ("start", "stop", "packets", "damaged", "loose", "problem", "latest_ns")
_SEEN_TYPES = [INDEX.field(name).type for name in _SEEN]


@dataclass(frozen=True, slots=True)
class Numbering:
    """
    Numbers connections: by their first packets, range after range.

    Attributes:
        before: How many connections begin in the ranges before each.
    """

    before: Sequence[int]

    def number(self, tasks: Batches) -> Iterator[pa.RecordBatch]:
        """Number all connections that begin in some ranges; rows of `HOMES`."""
        table = pa.Table.from_batches(tasks, HOMES)
        home, source, first = (np.asarray(table.column(name)) for name in HOMES.names)
        order = np.lexsort((first, home))
        home = home[order]
        within = np.arange(len(home)) - np.searchsorted(home, home)
        numbers = np.array(self.before, np.int64)[home] + within
        columns = [pa.array(each) for each in (source[order], first[order], numbers)]
        yield pa.RecordBatch.from_arrays(columns, schema=NUMBERS)


def _numbers(tasks: Batches) -> Iterator[int]:
    for batch in tasks:
        yield from batch.column(0).to_pylist()


def _rows(tasks: Batches) -> Iterator[dict[str, Any]]:
    for batch in tasks:
        yield from batch.to_pylist()


def _row(schema: pa.Schema, **values: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([values], schema=schema)


def _said(seen: Seen) -> dict[str, Any]:
    return {name: getattr(seen, name) for name in _SEEN}
