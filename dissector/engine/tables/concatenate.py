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
    NO_BUFFERS,
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


class _Pool:
    """The bytes of all columns: those of `base` stay where they are, copies of others follow."""

    def __init__(self, base: SliceBuffers) -> None:
        self._base = base
        self._copied = bytearray()

    def place(self, column: Slices) -> tuple[Ints, Ints]:
        """Return where the bytes of a column begin, and their lengths."""
        if column.buffers is self._base:
            return np.array(column.start), np.array(column.length)
        offsets, content = gather_bytes(column)
        none = column.start == NONE
        starts = np.where(none, NONE, offsets[:-1] + len(self._base) + len(self._copied))
        self._copied += content.data
        return starts, np.where(none, column.length, np.diff(offsets))

    def buffers(self, *, more: bool = False) -> SliceBuffers:
        """Return all bytes; whether `more` may follow."""
        base = self._base
        copied = np.frombuffer(bytes(self._copied) if more else self._copied, np.uint8)
        arena = np.concatenate((base.arena, copied)) if len(base.arena) else copied
        return SliceBuffers(base.data, base.carry_over, arena)


class ColumnConcatenator:
    """
    Concatenates columns window by window; their bytes are copied to one buffer.

    Args:
        base: Buffers that are valid as long as the result: bytes there are not copied.
    """

    def __init__(self, base: SliceBuffers = NO_BUFFERS) -> None:
        self._pool = _Pool(base)
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
            before, column = in_one_kind(joined.column(self._pool.buffers(more=True)), column)
            joined = _joined(before)
            joined.add(before, self._pool)
        joined.add(column, self._pool)
        self._joined[name] = joined

    def columns(self) -> Columns:
        """Return all rows; nothing may be added afterwards."""
        buffers = self._pool.buffers()
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

    def add(self, column: Coded, pool: _Pool) -> None:
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

    def add(self, column: Integers | Milliseconds, pool: _Pool) -> None:
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

    def add(self, column: Slices, pool: _Pool) -> None:
        starts, lengths = pool.place(column)
        self.starts.append(starts)
        self.lengths.append(lengths)

    def column(self, buffers: SliceBuffers) -> Slices:
        return self.kind(np.concatenate(self.starts), np.concatenate(self.lengths), buffers)


@dataclass(slots=True, eq=False, repr=False)
class _HeaderLists:
    """Columns of headers."""

    kind: type[Headers] = Headers
    counts: list[Ints] = field(default_factory=list)
    keys: _Bytes = field(default_factory=lambda: _Bytes(Slices))
    values: _Bytes = field(default_factory=lambda: _Bytes(Slices))

    def add(self, column: Headers, pool: _Pool) -> None:
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
