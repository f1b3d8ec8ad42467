"""
What the loop that writes rows needs of each column: numbers, and the text that Python has rendered.

Python renders each distinct value of a `Coded` column, null, and the few numbers and bytes that the
loop does not write as Python would.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dissector.engine.tables.column_types import (
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


@dataclass(slots=True)
class RowItem:
    """
    One item of every row.

    Attributes:
        prefix: The text that stands before it.
        column: Its values.
        kind: How the loop writes them; `Coded` has none.
        render: How Python writes a value, null among them.
        width: How many places a number takes at least.
    """

    prefix: str
    column: Column
    kind: int
    render: Render
    width: int = 0


@dataclass(slots=True)
class ItemCells:
    """
    An item as the loop takes it.

    Attributes:
        cells: One or two columns of numbers.
        kind: As of the item.
        prefix: The fragment that stands before what is none.
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
        """Return their bytes, and where each begins and the last ends."""
        offsets = np.zeros(len(self._texts) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, self._texts), np.int64), out=offsets[1:])
        return np.frombuffer(b"".join(self._texts), np.uint8), offsets


def lay_out(
    items: Sequence[RowItem], pool: FragmentPool, overrides: Mapping[int, str]
) -> list[ItemCells]:
    """Lay items out for the loop; neighbours with the same codes become one."""
    laid: list[ItemCells] = []
    for codes, group in groupby(items, _codes_identity):
        if codes is None:
            laid += [_lay_out_one(item, pool) for item in group]
        else:
            laid.append(_lay_out_coded(list(group), pool))
    if overrides:
        rows = np.fromiter(overrides, np.int64)
        nothing = loop.FIRST_FRAGMENT + pool.add(["", *overrides.values()])
        for at, each in enumerate(laid):
            cells = each.cells[0].copy()
            cells[rows] = nothing if at else nothing + 1 + np.arange(len(rows))
            each.cells[0] = cells
    return laid


def _codes_identity(item: RowItem) -> int | None:
    return id(item.column.codes) if isinstance(item.column, Coded) else None


def _lay_out_coded(items: Sequence[RowItem], pool: FragmentPool) -> ItemCells:
    """Lay columns out that have the same codes."""
    columns = [item.column for item in items if isinstance(item.column, Coded)]
    codes, null = columns[0].codes, len(columns[0].values)
    none = codes == NONE
    index = np.where(none, null, codes) if none.any() else codes
    numbers = np.zeros(null + 1, np.int64)
    numbers[index] = 1
    used = np.flatnonzero(numbers)
    texts = (
        "".join(
            item.prefix + item.render(None if code == null else column.values[code])
            for item, column in zip(items, columns, strict=True)
        )
        for code in used.tolist()
    )
    numbers[used] = loop.FIRST_FRAGMENT + pool.add(texts) + np.arange(len(used))
    return ItemCells([numbers[index]])


def _lay_out_one(item: RowItem, pool: FragmentPool) -> ItemCells:
    column = item.column
    values, more = _cells_of(column)
    none = values == NONE
    rare = np.flatnonzero(_needs_python(item, values) & ~none)
    before = pool.add([item.prefix, item.prefix + item.render(None)])
    if none.any() or len(rare):
        values = np.where(none, loop.FIRST_FRAGMENT + before + 1, values)
        texts = (item.prefix + item.render(column.value(row)) for row in rare.tolist())
        values[rare] = loop.FIRST_FRAGMENT + pool.add(texts) + np.arange(len(rare))
    return ItemCells([values, *more], item.kind, before, item.width)


def _cells_of(column: Column) -> tuple[Ints, list[Ints]]:
    """Return the cells of a column, and those beside them."""
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
    """Tell which values the loop would not write as Python does, nor take for a fragment."""
    rare: Bools
    match item.kind:
        case loop.MILLISECONDS:
            size = np.abs(values)
            rare = (size >= loop.MAX_EXACT_NS) | (size < loop.MIN_DECIMAL_NS) & (size != 0)
        case loop.THREE_PLACES:
            rare = (np.abs(values) >= loop.MAX_EXACT_NS) | (values % 1000 == 500)
        case loop.CSV_TEXT:
            rare = _non_ascii_text(item.column)
        case _:
            rare = values < loop.FIRST_FRAGMENT + loop.FRAGMENT_COUNT
    return rare


def _non_ascii_text(column: Column) -> Bools:
    """Tell which bytes are text that Python has to look at: UTF-8, but not all printable ASCII."""
    assert isinstance(column, Slices)
    rare = np.zeros(len(column), np.uint8)
    buffers = column.buffers
    find_non_ascii_text(
        column.start,
        column.length,
        buffers.data,
        buffers.carry_over,
        buffers.arena,
        rare,
        work=int(column.length.sum()),
    )
    return rare.view(np.bool_)
