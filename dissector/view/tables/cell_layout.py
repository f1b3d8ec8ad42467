"""
Prepares columns for the kernel that writes rows: numbers, and texts rendered by Python.

Python renders each distinct value of a `Coded` column, null, and the few numbers and bytes that the
kernel can't render like Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dissector.engine.tables.column_types import (
    ABSENT,
    Coded,
    Column,
    Headers,
    Integers,
    Milliseconds,
    Slices,
)
from dissector.engine.tables.exchange_table import NONE, Ints
from dissector.view.tables import row_kernel as loop
from dissector.view.tables.text_kernel import find_non_ascii_text

Render: TypeAlias = Callable[[Any], str]

Bools: TypeAlias = NDArray[np.bool_]


@dataclass(slots=True, eq=False, repr=False)
class RowItem:
    """
    One item of every row.

    Attributes:
        prefix: The text before it.
        column: Its values.
        kind: Form in which the kernel writes the values; not used for `Coded`.
        render: Renders a value in Python; also for null.
        width: Minimal width of a number.
    """

    prefix: str
    column: Column
    kind: int
    render: Render
    width: int = 0


@dataclass(slots=True, eq=False, repr=False)
class ItemCells:
    """
    The cells of an item, or of adjacent `Coded` items, for the kernel.

    Attributes:
        cells: One or two columns of numbers.
        kind: As of the item.
        prefix: The fragment before cells that are not fragments themselves.
        width: As of the item.
    """

    cells: list[Ints]
    kind: int = 0
    prefix: int = loop.NULL
    width: int = 0


class FragmentPool:
    """The fragments of some rows."""

    def __init__(self, first: Iterable[bytes]) -> None:
        self._texts = list(first)

    def add(self, texts: Iterable[str]) -> int:
        """Add fragments, and return the number of the first."""
        number = len(self._texts)
        self._texts += [text.encode() for text in texts]
        return number

    def arrays(self) -> tuple[NDArray[np.uint8], Ints]:
        """Return the bytes of all fragments, and their offsets, with the end of the last."""
        offsets = np.zeros(len(self._texts) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, self._texts), np.int64), out=offsets[1:])
        return np.frombuffer(b"".join(self._texts), np.uint8), offsets


def lay_out(items: Sequence[RowItem], pool: FragmentPool) -> list[ItemCells]:
    """Lay items out for the kernel; adjacent items with the same codes are merged."""
    item_cells: list[ItemCells] = []
    for codes, group in groupby(items, _codes_identity):
        if codes is None:
            item_cells += [_lay_out_one(item, pool) for item in group]
        else:
            item_cells.append(_lay_out_coded(list(group), pool))
    return item_cells


def _codes_identity(item: RowItem) -> int | None:
    return id(item.column.codes) if isinstance(item.column, Coded) else None


def _lay_out_coded(items: Sequence[RowItem], pool: FragmentPool) -> ItemCells:
    """Lay out columns that share their codes."""
    columns = [item.column for item in items if isinstance(item.column, Coded)]
    codes, null_code = columns[0].codes, len(columns[0].values)
    is_null = codes == NONE
    index = np.where(is_null, null_code, codes) if is_null.any() else codes
    numbers = np.zeros(null_code + 1, np.int64)
    numbers[index] = 1
    used = np.flatnonzero(numbers)
    texts = (
        "".join(
            _text(item, None if code == null_code else column.values[code])
            for item, column in zip(items, columns, strict=True)
        )
        for code in used.tolist()
    )
    numbers[used] = loop.FIRST_FRAGMENT + pool.add(texts) + np.arange(len(used))
    return ItemCells([numbers[index]])


def _text(item: RowItem, value: Any) -> str:
    return "" if value is ABSENT else item.prefix + item.render(value)


def _lay_out_one(item: RowItem, pool: FragmentPool) -> ItemCells:
    column = item.column
    values, further = _cells_of(column)
    is_null = values == NONE
    in_python = np.flatnonzero(_needs_python(item, values) & ~is_null)
    prefix = pool.add([item.prefix, item.prefix + item.render(None)])
    if is_null.any() or len(in_python):
        values = np.where(is_null, loop.FIRST_FRAGMENT + prefix + 1, values)
        texts = (item.prefix + item.render(column.value(row)) for row in in_python.tolist())
        values[in_python] = loop.FIRST_FRAGMENT + pool.add(texts) + np.arange(len(in_python))
    return ItemCells([values, *further], item.kind, prefix, item.width)


def _cells_of(column: Column) -> tuple[Ints, list[Ints]]:
    """Return the first column of cells, and further ones beside it."""
    match column:
        case Integers():
            return column.values, []
        case Milliseconds():
            return column.values_ns, []
        case Slices():
            return column.start, [column.length]
        case Headers():
            return column.first, [column.count]
        case _:
            raise TypeError("coded columns have no numbers")


def _needs_python(item: RowItem, values: Ints) -> Bools:
    """Return the values that the kernel writes differently from Python, or takes for fragments."""
    needs_python: Bools
    match item.kind:
        case loop.MILLISECONDS:
            size = np.abs(values)
            needs_python = (size >= loop.MAX_EXACT_NS) | (size < loop.MIN_DECIMAL_NS) & (size != 0)
        case loop.THREE_PLACES:
            needs_python = (np.abs(values) >= loop.MAX_EXACT_NS) | (values % 1000 == 500)
        case loop.CSV_TEXT:
            needs_python = _non_ascii_text(item.column)
        case _:
            needs_python = values < loop.FIRST_FRAGMENT + loop.FRAGMENT_COUNT
    return needs_python


def _non_ascii_text(column: Column) -> Bools:
    """Return the bytes columns that Python has to render: UTF-8, but not all printable ASCII."""
    assert isinstance(column, Slices)
    found = np.zeros(len(column), np.uint8)
    buffers = column.buffers
    find_non_ascii_text(
        column.start,
        column.length,
        buffers.data,
        buffers.carry_over,
        buffers.arena,
        found,
    )
    return found.view(np.bool_)
