"""Concatenates the columns of several windows, for commands that need all rows at once."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from dissector.engine.tables.arrow import gather_bytes
from dissector.engine.tables.column_kinds import identity, in_one_kind
from dissector.engine.tables.column_types import (
    ABSENT,
    Coded,
    Column,
    Columns,
    Headers,
    Integers,
    Milliseconds,
    SliceBuffers,
    Slices,
    row_count,
)
from dissector.engine.tables.exchange_table import NONE, Ints

_NO_BYTES = np.zeros(0, np.uint8)


class ColumnConcatenator:
    """Concatenates columns window by window; their bytes are copied to one buffer."""

    def __init__(self) -> None:
        self._pool = bytearray()
        self._joined: dict[str, _Joined] = {}
        self._count = 0

    def add(self, columns: Columns) -> None:
        """Add the rows of a window; where it has no such column, its cells are `ABSENT`."""
        count = row_count(columns)
        for name in dict.fromkeys((*self._joined, *columns)):
            column = columns.get(name)
            self._add(name, _absent(count) if column is None else column)
        self._count += count

    def _add(self, name: str, column: Column) -> None:
        joined = self._joined.get(name)
        if joined is None:
            joined = _joined(column)
            if self._count:
                joined = _joined(_absent(0))
                joined.add(_absent(self._count), self._pool)
        if joined.kind is not type(column):
            buffers = SliceBuffers(_NO_BYTES, _NO_BYTES, np.frombuffer(bytes(self._pool), np.uint8))
            before, column = in_one_kind(joined.column(buffers), column)
            joined = _joined(before)
            joined.add(before, self._pool)
        joined.add(column, self._pool)
        self._joined[name] = joined

    def columns(self) -> Columns:
        """Return all rows; nothing may be added afterwards."""
        buffers = SliceBuffers(_NO_BYTES, _NO_BYTES, np.frombuffer(self._pool, np.uint8))
        return {name: joined.column(buffers) for name, joined in self._joined.items()}


def _absent(count: int) -> Coded:
    return Coded(np.zeros(count, np.int64), [ABSENT])


@dataclass(slots=True, eq=False, repr=False)
class _Codes:
    """Dictionary-encoded columns: equal values in several windows get one code."""

    kind: type[Coded] = Coded
    values: list[Any] = field(default_factory=list)
    parts: list[Ints] = field(default_factory=list)
    _known: dict[Hashable, int] = field(default_factory=dict)

    def add(self, column: Coded, pool: bytearray) -> None:
        codes = [self._code(value) for value in column.values]
        codes.append(NONE)
        none = len(column.values)
        of_values = np.array(codes, np.int64)
        self.parts.append(of_values[np.where(column.codes == NONE, none, column.codes)])

    def _code(self, value: Any) -> int:
        code = self._known.setdefault(identity(value), len(self.values))
        if code == len(self.values):
            self.values.append(value)
        return code

    def column(self, buffers: SliceBuffers) -> Coded:
        return Coded(np.concatenate(self.parts), self.values)


@dataclass(slots=True, eq=False, repr=False)
class _Numbers:
    """Columns of integers or of milliseconds."""

    kind: type[Integers] | type[Milliseconds]
    parts: list[Ints] = field(default_factory=list)

    def add(self, column: Integers | Milliseconds, pool: bytearray) -> None:
        values = column.values if isinstance(column, Integers) else column.values_ns
        self.parts.append(np.array(values))

    def column(self, buffers: SliceBuffers) -> Integers | Milliseconds:
        return self.kind(np.concatenate(self.parts))


@dataclass(slots=True, eq=False, repr=False)
class _Bytes:
    """Columns of bytes, copied to one pool."""

    kind: type[Slices]
    starts: list[Ints] = field(default_factory=list)
    lengths: list[Ints] = field(default_factory=list)

    def add(self, column: Slices, pool: bytearray) -> None:
        offsets, content = gather_bytes(column)
        none = column.start == NONE
        self.starts.append(np.where(none, NONE, offsets[:-1] + len(pool)))
        self.lengths.append(np.where(none, column.length, np.diff(offsets)))
        pool += content.data

    def column(self, buffers: SliceBuffers) -> Slices:
        return self.kind(np.concatenate(self.starts), np.concatenate(self.lengths), buffers)


@dataclass(slots=True, eq=False, repr=False)
class _HeaderLists:
    """Columns of headers."""

    kind: type[Headers] = Headers
    counts: list[Ints] = field(default_factory=list)
    keys: _Bytes = field(default_factory=lambda: _Bytes(Slices))
    values: _Bytes = field(default_factory=lambda: _Bytes(Slices))

    def add(self, column: Headers, pool: bytearray) -> None:
        rows = column.items
        self.counts.append(np.array(column.count))
        for joined, source in ((self.keys, column.keys), (self.values, column.values)):
            joined.add(Slices(source.start[rows], source.length[rows], source.buffers), pool)

    def column(self, buffers: SliceBuffers) -> Headers:
        count = np.concatenate(self.counts)
        first = np.cumsum(count) - count
        return Headers(first, count, self.keys.column(buffers), self.values.column(buffers))


_Joined: TypeAlias = Any
"""One of the classes above, for one kind of column."""


def _joined(column: Column) -> _Joined:
    match column:
        case Coded():
            return _Codes()
        case Integers() | Milliseconds():
            return _Numbers(type(column))
        case Slices():
            return _Bytes(type(column))
        case Headers():
            return _HeaderLists()
