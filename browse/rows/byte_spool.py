"""
Columns of bytes in a temporary file: keys and values of a million records exceed the memory.

Memory holds only the position and the length of each value.
"""

from __future__ import annotations

import os
import tempfile
import weakref
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from dissector.engine.tables.arrow import gather_bytes
from dissector.engine.tables.column_types import (
    Bytes,
    Coded,
    Column,
    Columns,
    Headers,
    Integers,
    Milliseconds,
    SliceBuffers,
    Slices,
    items_of,
)
from dissector.engine.tables.exchange_table import NONE, Ints
from dissector.engine.tables.packed_columns import PackedInts, unpack_column

_EVERY = slice(None)
_NO_BYTES = np.zeros(0, np.uint8)


class ByteSpool:
    """A temporary file of bytes; one thread appends, others read."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="kafkashark-")  # noqa: SIM115  (until the end)
        weakref.finalize(self, self._file.close)
        self.size = 0

    def append(self, content: Bytes) -> int:
        """Append bytes; return their position."""
        begin = self.size
        self._file.write(content.data)
        self._file.flush()
        self.size += len(content)
        return begin

    def read(self, begin: int, count: int) -> bytes:
        """Return some bytes."""
        return os.pread(self._file.fileno(), count, begin)


@dataclass(slots=True, eq=False, repr=False)
class SpooledBytes:
    """
    A column of bytes in a file.

    Attributes:
        start: Position of each value in the file.
        length: Number of its bytes; NONE for null.
        spool: The file.
    """

    start: PackedInts
    length: PackedInts
    spool: ByteSpool

    def __len__(self) -> int:
        return len(self.length)

    def value(self, row: int) -> bytes | None:
        """Return the value of a row."""
        length = self.length[row]
        return None if length == NONE else self.spool.read(self.start[row], length)

    def unpack(self, rows: slice | Ints = _EVERY) -> Slices:
        """Return some rows, by default all, with their bytes in memory."""
        start, length = self.start.unpack(rows), self.length.unpack(rows)
        is_set = length != NONE
        count = np.where(is_set, length, 0)
        begin, end = int(start.min(initial=self.spool.size)), int((start + count).max(initial=0))
        content = np.frombuffer(self.spool.read(begin, max(0, end - begin)), np.uint8)
        buffers = SliceBuffers(content, _NO_BYTES, _NO_BYTES)
        return Slices(np.where(is_set, start - begin, NONE), count, buffers)


@dataclass(slots=True, eq=False, repr=False)
class SpooledHeaders:
    """
    A column of headers in a file.

    Attributes:
        first: Index of the first header of each row.
        count: Number of its headers.
        keys: The key of each header.
        values: The value of each header.
    """

    first: PackedInts
    count: PackedInts
    keys: SpooledBytes
    values: SpooledBytes

    def __len__(self) -> int:
        return len(self.count)

    def value(self, row: int) -> list[dict[str, Any]]:
        """Return the value of a row: key as text, value as bytes."""
        return self.unpack(np.array([row])).value(0)

    def unpack(self, rows: slice | Ints = _EVERY) -> Headers:
        """Return some rows, by default all, with their bytes in memory."""
        count = self.count.unpack(rows)
        headers = items_of(self.first.unpack(rows), count)
        first = np.cumsum(count) - count
        return Headers(first, count, self.keys.unpack(headers), self.values.unpack(headers))


ListColumn: TypeAlias = Column | SpooledBytes | SpooledHeaders
"""A column of a list: packed, or in a file; `value` returns the value of a row."""


def unpacked(column: ListColumn, rows: slice | Ints = _EVERY) -> Column:
    """Return some rows of a column of a list, by default all, as an ordinary column."""
    match column:
        case SpooledBytes() | SpooledHeaders():
            return column.unpack(rows)
        case Coded() | Integers() | Milliseconds():
            return unpack_column(column, rows)
        case _:
            raise TypeError(f"not a column of a list: {type(column).__name__}")


def spool_bytes(columns: Columns, spool: ByteSpool) -> dict[str, ListColumn]:
    """Return columns with their bytes in a file."""
    return {name: _spooled(column, spool) for name, column in columns.items()}


def _spooled(column: Column, spool: ByteSpool) -> ListColumn:
    match column:
        case Slices():
            return _write(column, spool)
        case Headers():
            headers = column.items
            keys, values = (
                _write(Slices(each.start[headers], each.length[headers], each.buffers), spool)
                for each in (column.keys, column.values)
            )
            first = np.cumsum(column.count) - column.count
            return SpooledHeaders(PackedInts.of(first), PackedInts.of(column.count), keys, values)
        case _:
            return column


def _write(column: Slices, spool: ByteSpool) -> SpooledBytes:
    offsets, content = gather_bytes(column)
    length = np.where(column.start == NONE, NONE, np.diff(offsets))
    begin = spool.append(content)
    return SpooledBytes(PackedInts.of(begin + offsets[:-1]), PackedInts.of(length), spool)
