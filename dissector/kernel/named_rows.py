"""
Tables of rows with named fields: a structured array of numpy, a C struct in compiled kernels.

A subclass of `NamedRow` declares the fields: integers of 64 bits, or two rows or integers side by
side. Kernels take a table as `Rows[Side]`, and one row alone, an array of no dimensions, as `Side`.
So `side.next += length[i]` is an addition in memory, and a field that does not exist is an error
of types.

    class Side(NamedRow):
        next: int

    sides = np.zeros(10, dtype_of(Side))
    sides["next"] += 1
    rows_of(sides, Side)[3].next += 1
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from operator import attrgetter
from typing import Any, Protocol, TypeAlias, TypeVar, cast, get_args, get_origin, get_type_hints

import numpy as np

_Item = TypeVar("_Item")
_Read = TypeVar("_Read", covariant=True)
_Named = TypeVar("_Named", bound="NamedRow")

RowArray: TypeAlias = "np.ndarray[Any, np.dtype[np.void]]"
"""A structured array with the fields of a `NamedRow`."""


class NamedRow:
    """A row of a table; its subclasses annotate each field with `int`, `bool` or `Two`."""


class Rows(Protocol[_Read]):
    """A table of rows, in kernels and for single rows in Python; see `rows_of`."""

    def __getitem__(self, number: int, /) -> _Read:
        """Return a row, not a copy."""

    def __len__(self) -> int: ...


class Two(Rows[_Item], Protocol[_Item]):
    """Two rows, or two integers, inside a row: of both directions, for example."""

    def __setitem__(self, number: int, value: _Item, /) -> None: ...


def dtype_of(row: type[NamedRow]) -> np.dtype[np.void]:
    """Return the type of a structured array with the fields of a row."""
    kind: Any = row
    return _dtype_of(kind)


@cache
def _dtype_of(row: Any) -> np.dtype[np.void]:
    hints = get_type_hints(row)
    return np.dtype([(name, *_field_type(hint)) for name, hint in hints.items()])


def table_of(rows: Sequence[_Named], row: type[_Named]) -> RowArray:
    """Return a table of rows that were made in Python, as objects of a dataclass."""
    dtype = dtype_of(row)
    values = attrgetter(*dtype.names or ())
    return np.array([values(each) for each in rows], dtype)


def rows_of(table: RowArray, row: type[_Named]) -> Rows[_Named]:
    """
    Return the rows of a table of one dimension, to read and write single fields.

    The table must outlive them.
    """
    _check(table, row)
    return cast("Rows[_Named]", in_memory(table))


def row_of(table: RowArray, row: type[_Named]) -> _Named:
    """Return the only row of a table of no dimensions; the table must outlive it."""
    _check(table, row)
    return cast("_Named", in_memory(table))


def field_of(table: RowArray, name: str) -> np.ndarray[Any, Any]:
    """Return a field of a table by its whole name, as `streams.next`: of both streams, [n, 2]."""
    found: np.ndarray[Any, Any] = table
    for part in name.split("."):
        found = found[part]
    return found


def _check(table: RowArray, row: type[NamedRow]) -> None:
    assert table.dtype == dtype_of(row), f"no table of {row.__name__}"


def in_memory(table: RowArray) -> Any:
    """Return the rows of a table, or its only row, as kernels that run as Python see them."""
    kind = _structure(table.dtype)
    address = table.ctypes.data  # `__array_interface__` describes all fields, for a millisecond
    return ((kind * len(table)) if table.ndim else kind).from_address(address)


def _field_type(hint: Any) -> tuple[Any, ...]:
    if get_origin(hint) is Two:
        return *_field_type(get_args(hint)[0]), 2
    return (dtype_of(hint) if issubclass(hint, NamedRow) else np.int64,)


@cache
def _structure(dtype: np.dtype[np.void]) -> type[ctypes.Structure]:
    """Return the structure of the fields of a row."""
    fields = []
    for name, (kind, *_) in (dtype.fields or {}).items():
        inside = kind.base
        item: Any = _structure(inside) if inside.fields else ctypes.c_int64
        fields.append((name, item * kind.shape[0] if kind.shape else item))
    return type("Row", (ctypes.Structure,), {"_fields_": fields})
