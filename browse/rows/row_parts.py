"""Rows of a list in packed parts; one thread appends, others read."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from browse.rows.byte_ranks import byte_ranks
from browse.rows.byte_spool import (
    ByteSpool,
    ListColumn,
    SpooledBytes,
    SpooledHeaders,
    spool_bytes,
    unpacked,
)
from dissector.engine.tables.column_kinds import column_of
from dissector.engine.tables.column_types import Coded, Column, Columns, Integers, Slices, row_count
from dissector.engine.tables.exchange_table import NONE, Ints
from dissector.engine.tables.packed_columns import pack_columns

_EVERY = slice(None)


class RowParts:
    """
    Rows in columns, numbered from 0, with a part for each window of the capture.

    Attributes:
        parts: Packed columns of each part; all parts have the same names.
        ends: End of each part. Appended last, because readers stop there.
    """

    def __init__(self) -> None:
        self.parts: list[Mapping[str, Any]] = []
        self.ends: list[int] = []

    def __len__(self) -> int:
        return self.ends[-1] if self.ends else 0

    def append(self, columns: Mapping[str, Any]) -> None:
        """Append a part, unless it is empty; its columns of bytes are in a spool."""
        if count := row_count(columns):
            end = len(self) + count
            self.parts.append(pack_columns(columns))
            self.ends.append(end)

    def add_column(self, begin: int, name: str, column: Column) -> None:
        """Add a column to the part with this first row, if it exists."""
        part = bisect_right(self.ends, begin)
        if part < len(self.ends) and self.begin_of(part) == begin:
            self.parts[part] = {**self.parts[part], **pack_columns({name: column})}

    def columns(self, part: int, rows: slice | Ints = _EVERY) -> Columns:
        """Return some rows of a part, by default all; access to a column unpacks it."""
        return _PartColumns(self.parts[part], rows)

    def column(self, part: int, name: str) -> Column:
        """Return a column of a part; nulls until it is read."""
        found = self.parts[part].get(name)
        if found is None:
            return Coded(np.full(self.ends[part] - self.begin_of(part), NONE), [])
        return unpacked(found)

    def sort_column(self, parts: int, name: str) -> Iterator[Column]:
        """Yield a column of the first parts; columns of bytes as their ranks."""
        found = [self.parts[part].get(name) for part in range(parts)]
        if not any(isinstance(each, SpooledBytes | SpooledHeaders) for each in found):
            yield from (self.column(part, name) for part in range(parts))
            return
        ranks = byte_ranks([_comparable(each) for each in found])
        for part in range(parts):
            yield Integers(ranks[self.begin_of(part) : self.ends[part]])

    def begin_of(self, part: int) -> int:
        """Return the number of the first row of a part."""
        return self.ends[part - 1] if part else 0

    def value(self, row: int, name: str) -> Any:
        """Return one cell."""
        return self.cells(row, (name,))[0]

    def cells(self, row: int, names: Iterable[str]) -> list[Any]:
        """Return some cells of a row; None for columns not yet read."""
        part = bisect_right(self.ends, row)
        columns, at = self.parts[part], row - self.begin_of(part)
        return [columns[name].value(at) if name in columns else None for name in names]

    def row(self, row: int) -> dict[str, Any]:
        """Return a row by column names, with hidden columns."""
        part = bisect_right(self.ends, row)
        at = row - self.begin_of(part)
        return {name: column.value(at) for name, column in self.parts[part].items()}

    def numbers(self, name: str) -> Ints:
        """Return an integer column for all rows; NONE for null."""
        arrays = [_integers(unpacked(part[name])) for part in self.parts[: len(self.ends)]]
        return np.concatenate(arrays) if arrays else np.zeros(0, np.int64)


class _PartColumns(Mapping[str, Column]):
    """Some rows of a part; access to a column unpacks it."""

    def __init__(self, columns: Mapping[str, ListColumn], rows: slice | Ints) -> None:
        self._columns = columns
        self._rows = rows

    def __getitem__(self, name: str) -> Column:
        return unpacked(self._columns[name], self._rows)

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


def _comparable(column: Any) -> SpooledBytes:
    """Return a column of bytes; for headers, their keys and values in sequence."""
    if isinstance(column, SpooledBytes):
        return column
    assert isinstance(column, SpooledHeaders)
    headers = column.unpack()
    texts = [
        b"\0".join(part for each in headers.value(row) for part in _halves(each))
        for row in range(len(headers))
    ]
    found = spool_bytes({"headers": column_of(texts, Slices)}, ByteSpool())["headers"]
    assert isinstance(found, SpooledBytes)
    return found


def _halves(header: Mapping[str, Any]) -> tuple[bytes, bytes]:
    return header["key"].encode("utf-8", "surrogateescape"), header["value"] or b""


def _integers(column: Any) -> Ints:
    if isinstance(column, Integers):
        return column.values
    assert isinstance(column, Coded)
    values = np.array([NONE if each is None else each for each in [*column.values, None]], np.int64)
    found: Ints = values[np.where(column.codes == NONE, len(values) - 1, column.codes)]
    return found
