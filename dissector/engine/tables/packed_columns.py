"""Columns of numbers that take little memory: integers in the smallest sufficient type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dissector.engine.tables.column_types import Coded, Column, Columns, Integers, Milliseconds
from dissector.engine.tables.exchange_table import NONE, Ints

_EVERY = slice(None)


@dataclass(slots=True, eq=False, repr=False)
class PackedInts:
    """
    Integers in the smallest sufficient type; equal ones take no memory.

    Attributes:
        base: To be added to each.
        numbers: From 1 on; 0 for null.
    """

    base: int
    numbers: NDArray[Any]

    @classmethod
    def of(cls, values: Ints) -> PackedInts:
        """Pack integers, NONE for null."""
        is_set = values != NONE
        base = int(values[is_set].min(initial=np.iinfo(np.int64).max)) - 1
        # A uint64 holds distances that are too large for an int64.
        distance = np.where(is_set, values - base, 0).view(np.uint64)
        most = int(distance.max(initial=0))
        packed = distance.astype(np.min_scalar_type(most))
        if len(packed) and int(distance.min()) == most:
            packed = np.broadcast_to(packed[0].copy(), packed.shape)
        return cls(base, packed)

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, row: int) -> int:
        number = int(self.numbers[row])
        return self.base + number if number else NONE

    def unpack(self, rows: slice | Ints = _EVERY) -> Ints:
        """Return some of the integers, by default all."""
        numbers = self.numbers[rows]
        return np.where(numbers == 0, NONE, numbers.astype(np.int64) + self.base)


def pack_columns(columns: Columns) -> Columns:
    """
    Return columns in compact form, without references to their window.

    `value` of a packed column works as before; its array comes back by `unpack_columns`. Columns of
    bytes stay as they are.
    """
    return _renumbered(columns, PackedInts.of)


def unpack_columns(columns: Columns) -> Columns:
    """Return packed columns in their original form."""
    return _renumbered(columns, lambda packed: packed.unpack())


ColumnType = TypeVar("ColumnType", bound=Column)


def unpack_column(column: ColumnType, rows: slice | Ints = _EVERY) -> ColumnType:
    """Return some rows of a packed column, by default all, in the original form."""
    return _with_numbers(column, lambda packed: packed.unpack(rows))


def _renumbered(columns: Columns, change: Callable[[Any], Any]) -> Columns:
    """Return columns with changed integers; columns that share an array still share one."""
    changed: dict[int, Any] = {}

    def once(numbers: Any) -> Any:
        if id(numbers) not in changed:
            changed[id(numbers)] = change(numbers)
        return changed[id(numbers)]

    return {name: _with_numbers(column, once) for name, column in columns.items()}


def _with_numbers(column: ColumnType, change: Callable[[Any], Any]) -> ColumnType:
    name = _NUMBERS.get(type(column))
    return column if name is None else replace(column, **{name: change(getattr(column, name))})


_NUMBERS: Mapping[type, str] = {Coded: "codes", Integers: "values", Milliseconds: "values_ns"}
"""The attribute with the integers of each type of column."""
