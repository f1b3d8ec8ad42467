"""
Columns of a table to be written: arrays of one length, no object per row.

Six kinds. `Coded` for repeated values: each distinct value is stored once. `Integers`.
`Milliseconds`. `Slices` for bytes that stay where they are; `JsonTexts` where these are text.
`Headers` for lists of such bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dissector.engine.tables.exchange_table import NONE, Ints
from dissector.kernel.arrays import Buffers

Bytes: TypeAlias = NDArray[np.uint8]

Row: TypeAlias = Mapping[str, Any]
"""A single row: values by the names of columns."""


class Absent:
    """Of a cell that its row does not have: ndjson writes no name there, unlike for null."""


ABSENT = Absent()


@dataclass(slots=True, eq=False, repr=False)
class Coded:
    """
    Dictionary-encoded values.

    Attributes:
        codes: Of each row, the index of its value; NONE for null.
        values: Each distinct value, even without a row; one may be `ABSENT`.
    """

    codes: Ints
    values: Sequence[Any]

    def __len__(self) -> int:
        return len(self.codes)

    def value(self, row: int) -> Any:
        """Return the value of a row."""
        code = int(self.codes[row])
        return None if code == NONE else self.values[code]


@dataclass(slots=True, eq=False, repr=False)
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


@dataclass(slots=True, eq=False, repr=False)
class Milliseconds:
    """
    Durations in nanoseconds, shown in milliseconds.

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


@dataclass(slots=True, eq=False, repr=False)
class SliceBuffers:
    """
    The buffers that slices refer to.

    A slice begins at an offset in `data`; from the end of `data` on, in `carry_over`; from the end
    of that on, in `arena`.
    """

    data: Bytes
    carry_over: Bytes
    arena: Bytes

    def __len__(self) -> int:
        return len(self.data) + len(self.carry_over) + len(self.arena)

    @property
    def for_kernels(self) -> Buffers:
        """The buffers in the form that kernels take."""
        return Buffers._make((self.data, self.carry_over, self.arena))

    def bytes_at(self, start: int, length: int) -> bytes:
        """Return some bytes, all of one buffer."""
        for buffer in (self.data, self.carry_over):
            if start < len(buffer):
                return buffer[start : start + length].tobytes()
            start -= len(buffer)
        return self.arena[start : start + length].tobytes()


NO_BUFFERS = SliceBuffers(*[np.zeros(0, np.uint8)] * 3)


@dataclass(slots=True, eq=False, repr=False)
class Slices:
    """
    Bytes of messages, not copied.

    Attributes:
        start: Where they begin in the buffers; NONE for null.
        length: Number of bytes.
        buffers: The bytes that they refer to.
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

    def contents(self, rows: Ints) -> Iterator[bytes | None]:
        """Yield the values of some rows."""
        buffers = self.buffers
        data, carry_over, arena = buffers.data.data, buffers.carry_over.data, buffers.arena.data
        second = len(data)
        third = second + len(carry_over)
        for start, length in zip(
            self.start[rows].tolist(), self.length[rows].tolist(), strict=True
        ):
            if start == NONE:
                yield None
            elif start < second:
                yield data[start : start + length].tobytes()
            elif start < third:
                yield carry_over[start - second : start - second + length].tobytes()
            else:
                yield arena[start - third : start - third + length].tobytes()


@dataclass(slots=True, eq=False, repr=False)
class JsonTexts(Slices):
    """Bytes of JSON values, in UTF-8."""


def items_of(first: Ints, count: Ints) -> Ints:
    """Return the indexes of runs of items, each with its first index and their number, in order."""
    before = np.cumsum(count) - count
    return np.repeat(first - before, count) + np.arange(int(count.sum()))


@dataclass(slots=True, eq=False, repr=False)
class Headers:
    """
    The headers of records, in order.

    Attributes:
        first: Of each row, the index of its first header.
        count: Number of headers.
        keys: The key of each header; never null.
        values: The value of each header.
    """

    first: Ints
    count: Ints
    keys: Slices
    values: Slices

    def __len__(self) -> int:
        return len(self.first)

    @property
    def items(self) -> Ints:
        """The indexes of all headers in the order of their rows; those of chosen rows are apart."""
        return items_of(self.first, self.count)

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
"""By name, in order."""


def row_dict(columns: Columns, row: int) -> dict[str, Any]:
    """Return one row as a mapping of names to values."""
    cells = ((name, column.value(row)) for name, column in columns.items())
    return {name: value for name, value in cells if value is not ABSENT}


def iter_rows(columns: Columns) -> Iterator[dict[str, Any]]:
    """Return the rows as mappings of names to values."""
    return (row_dict(columns, row) for row in range(row_count(columns)))


def row_count(columns: Columns) -> int:
    """Return the number of rows; 0 without columns."""
    return len(next(iter(columns.values()), ()))


_PER_ROW: Mapping[type[Any], Sequence[str]] = {
    Coded: ("codes",),
    Integers: ("values",),
    Milliseconds: ("values_ns",),
    Slices: ("start", "length"),
    JsonTexts: ("start", "length"),
    Headers: ("first", "count"),
}
"""The arrays of a column with an element for each row."""


def select_rows(columns: Columns, rows: slice | Ints) -> Columns:
    """
    Return some rows of columns; for a slice, without copying.

    Columns that share codes still share them.
    """
    selected: dict[int, Any] = {}

    def of(array: Any) -> Any:
        if id(array) not in selected:
            selected[id(array)] = array[rows]
        return selected[id(array)]

    return {
        name: replace(
            column, **{array: of(getattr(column, array)) for array in _PER_ROW[type(column)]}
        )
        for name, column in columns.items()
    }


class Texts(NamedTuple):
    """
    Texts in UTF-8.

    Attributes:
        start: Where each begins in the parts, which follow each other; NONE for null.
        length: Its bytes.
        parts: The bytes.
    """

    start: Ints
    length: Ints
    parts: Sequence[Bytes]


def texts_of(texts: Sequence[bytes | None]) -> Texts:
    """Return single texts together."""
    length = np.array([0 if each is None else len(each) for each in texts], np.int64)
    is_null = np.array([each is None for each in texts], np.bool_)
    whole = np.frombuffer(b"".join(filter(None, texts)), np.uint8)
    return Texts(np.where(is_null, NONE, np.cumsum(length) - length), length, [whole])


def with_json_texts(columns: Columns, texts: Mapping[str, Texts]) -> Columns:
    """
    Return columns with more columns of JSON.

    All columns with bytes share their buffers: the texts are put behind the bytes that are there.
    """
    moved, buffers, end = with_bytes(
        columns, [part for each in texts.values() for part in each.parts]
    )
    out = {**moved}
    for name, (start, length, parts) in texts.items():
        out[name] = JsonTexts(np.where(start == NONE, NONE, end + start), length, buffers)
        end += sum(map(len, parts))
    return out


def with_bytes(columns: Columns, added: Sequence[Bytes]) -> tuple[Columns, SliceBuffers, int]:
    """Return columns with bytes behind those that they share, these buffers, and the place."""
    old = shared_buffers(columns.values())
    buffers = replace(old, arena=np.concatenate((old.arena, *added)))
    return {name: _moved(each, buffers) for name, each in columns.items()}, buffers, len(old)


def shared_buffers(columns: Iterable[Column]) -> SliceBuffers:
    """Return the buffers that the columns with bytes share; without such a column empty ones."""
    for column in columns:
        if isinstance(column, Headers):
            return column.keys.buffers
        if isinstance(column, Slices):
            return column.buffers
    return NO_BUFFERS


def _moved(column: Column, buffers: SliceBuffers) -> Column:
    """Return a column whose bytes are at the same places in other buffers."""
    match column:
        case Slices():
            return replace(column, buffers=buffers)
        case Headers(keys=keys, values=values):
            return replace(
                column,
                keys=replace(keys, buffers=buffers),
                values=replace(values, buffers=buffers),
            )
    return column


_NARROW = 1 << 17
"""Up to this span of values, a lookup table finds the distinct ones."""


def distinct(values: Ints) -> tuple[Ints, Ints]:
    """Return for each value its index among the distinct ones, and these in order."""
    if not len(values):
        return values, values
    lowest = values.min()
    span = int(values.max()) - int(lowest) + 1
    if span > max(_NARROW, 4 * len(values)):
        distinct, indices = np.unique(values, return_inverse=True)
        return indices, distinct
    from_lowest = values - lowest
    index_of = np.zeros(span, np.int64)
    index_of[from_lowest] = 1
    found = np.flatnonzero(index_of)
    index_of[found] = np.arange(len(found))
    return index_of[from_lowest], found + lowest


def numbered(values: Ints) -> tuple[Ints, Ints]:
    """Return for each value its index among the distinct ones, and the first place of each."""
    codes, found = distinct(values)
    every = np.arange(len(values))
    first = np.zeros(len(found), np.int64)
    first[codes[::-1]] = every[::-1]
    order = np.argsort(first)
    number = np.empty_like(order)
    number[order] = np.arange(len(order))
    return number[codes], first[order]


def with_capacity(table: NDArray[Any], count: int) -> NDArray[Any]:
    """Return a table with the given capacity, twice as large if it is reallocated."""
    if count <= len(table):
        return table
    wider = np.zeros((max(count, 2 * len(table)), *table.shape[1:]), table.dtype)
    wider[: len(table)] = table
    return wider
