"""
Columns of a table whose rows are going to be written: arrays of one length, no object per row.

Six kinds. `Coded` for what repeats: each distinct value is there once. `Integers`. `Milliseconds`.
`Slices` for bytes that stay where they are; `JsonTexts` where these are text. `Headers` for lists
of such bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dissector.engine.tables.exchange_table import NONE, Ints

Bytes: TypeAlias = NDArray[np.uint8]


@dataclass(slots=True)
class Coded:
    """
    Values that repeat.

    Attributes:
        codes: Of each row, the index of its value; NONE for null.
        values: Each distinct value, also those that no row has.
    """

    codes: Ints
    values: Sequence[Any]

    def __len__(self) -> int:
        return len(self.codes)

    def value(self, row: int) -> Any:
        """Return the value of a row."""
        code = int(self.codes[row])
        return None if code == NONE else self.values[code]


@dataclass(slots=True)
class Integers:
    """
    Integers.

    Attributes:
        values: NONE for null.
    """

    values: Ints

    def __len__(self) -> int:
        return len(self.values)

    def value(self, row: int) -> int | None:
        """Return the value of a row."""
        value = int(self.values[row])
        return None if value == NONE else value


@dataclass(slots=True)
class Milliseconds:
    """
    Lengths of time, shown in milliseconds.

    Attributes:
        values_ns: NONE for null.
    """

    values_ns: Ints

    def __len__(self) -> int:
        return len(self.values_ns)

    def value(self, row: int) -> float | None:
        """Return the value of a row, in milliseconds."""
        value = int(self.values_ns[row])
        return None if value == NONE else value / 1e6


@dataclass(slots=True)
class SliceBuffers:
    """
    The bytes that slices are of.

    A slice begins at an offset in `data`; from its end on, in `carry_over`; from the end of that
    on, in `arena`.
    """

    data: Bytes
    carry_over: Bytes
    arena: Bytes

    def bytes_at(self, start: int, length: int) -> bytes:
        """Return some bytes, all of one buffer."""
        for buffer in (self.data, self.carry_over):
            if start < len(buffer):
                return buffer[start : start + length].tobytes()
            start -= len(buffer)
        return self.arena[start : start + length].tobytes()


@dataclass(slots=True)
class Slices:
    """
    Bytes of a message.

    Attributes:
        start: Where they begin in the buffers; NONE for null.
        length: How many.
        buffers: What they are of.
    """

    start: Ints
    length: Ints
    buffers: SliceBuffers

    def __len__(self) -> int:
        return len(self.start)

    def value(self, row: int) -> bytes | None:
        """Return the value of a row."""
        start = int(self.start[row])
        return None if start == NONE else self.buffers.bytes_at(start, int(self.length[row]))


@dataclass(slots=True)
class JsonTexts(Slices):
    """Bytes that are the text of a value in JSON, as UTF-8."""


@dataclass(slots=True)
class Headers:
    """
    The headers of records, in order.

    Attributes:
        first: Of each row, the index of its first header.
        count: How many it has.
        keys: The key of each header; never null.
        values: The value of each header.
    """

    first: Ints
    count: Ints
    keys: Slices
    values: Slices

    def __len__(self) -> int:
        return len(self.first)

    def value(self, row: int) -> list[dict[str, Any]]:
        """Return the value of a row: key as text, value as bytes."""
        first = int(self.first[row])
        return [
            {
                "key": (self.keys.value(i) or b"").decode("utf-8", "surrogateescape"),
                "value": self.values.value(i),
            }
            for i in range(first, first + int(self.count[row]))
        ]


Column: TypeAlias = Coded | Integers | Milliseconds | Slices | Headers

Columns: TypeAlias = Mapping[str, Column]
"""By their names, in order."""


def row_dict(columns: Columns, row: int) -> dict[str, Any]:
    """Return one row as it would be without columns."""
    return {name: column.value(row) for name, column in columns.items()}


def row_count(columns: Columns) -> int:
    """Return how many rows columns have."""
    return len(next(iter(columns.values())))


_PER_ROW: Mapping[type[Any], Sequence[str]] = {
    Coded: ("codes",),
    Integers: ("values",),
    Milliseconds: ("values_ns",),
    Slices: ("start", "length"),
    JsonTexts: ("start", "length"),
    Headers: ("first", "count"),
}
"""The arrays of a column that have an element for each row."""


def select_rows(columns: Columns, rows: slice | Ints) -> Columns:
    """Return some rows of columns; of a slice nothing is copied."""
    return {
        name: replace(
            column, **{array: getattr(column, array)[rows] for array in _PER_ROW[type(column)]}
        )
        for name, column in columns.items()
    }


_NARROW = 1 << 17
"""Values no further apart than this are told apart by a table of all between them."""


def distinct(values: Ints) -> tuple[Ints, Ints]:
    """Return for each value its place among the distinct ones, and these in order."""
    if not len(values):
        return values, values
    lowest = values.min()
    span = int(values.max()) - int(lowest) + 1
    if span > max(_NARROW, 4 * len(values)):
        distinct, places = np.unique(values, return_inverse=True)
        return places, distinct
    from_lowest = values - lowest
    place = np.zeros(span, np.int64)
    place[from_lowest] = 1
    seen = np.flatnonzero(place)
    place[seen] = np.arange(len(seen))
    return place[from_lowest], seen + lowest


def slice_columns(columns: Columns, rows: slice) -> dict[str, Column]:
    """Return some rows that follow one another; columns that had the same codes have them still."""
    codes: dict[int, Ints] = {}
    return {name: _part(column, rows, codes) for name, column in columns.items()}


def _part(column: Column, rows: slice, codes: dict[int, Ints]) -> Column:
    match column:
        case Coded():
            part = codes.setdefault(id(column.codes), column.codes[rows])
            return Coded(part, column.values)
        case Integers():
            return Integers(column.values[rows])
        case Milliseconds():
            return Milliseconds(column.values_ns[rows])
        case Slices():
            return replace(column, start=column.start[rows], length=column.length[rows])
        case Headers():
            return replace(column, first=column.first[rows], count=column.count[rows])


def with_capacity(table: NDArray[Any], count: int) -> NDArray[Any]:
    """Return a table with room for so many rows, twice as many if it has to be made anew."""
    if count <= len(table):
        return table
    wider = np.zeros((max(count, 2 * len(table)), *table.shape[1:]), table.dtype)
    wider[: len(table)] = table
    return wider
