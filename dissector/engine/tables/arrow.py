"""
Columns of bytes as polars has them, without an object for each value.

polars takes arrays of the Arrow C data interface: two structs that tell of buffers, and a function
that lets go of them.

Source: arrow.apache.org/docs/format, CDataInterface.html, CDataInterface/PyCapsuleInterface.html
and Columnar.html.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dissector.engine.tables.column_types import Headers, Slices
from dissector.engine.tables.exchange_table import NONE
from dissector.kernel import Kernel
from dissector.kernel.memcpy import copy_bytes

if TYPE_CHECKING:
    import polars

Bytes: TypeAlias = NDArray[np.uint8]


def bytes_series(column: Slices) -> polars.Series:
    """Return a column of bytes; they are copied."""
    import polars

    return polars.Series(values=_Exported(_bytes(column, b"Z")))


def text_series(column: Slices) -> polars.Series:
    """Return a column of texts, which are UTF-8; they are copied."""
    import polars

    return polars.Series(values=_Exported(_bytes(column, b"U")))


_INTEGERS = {2: b"s", 4: b"i", 8: b"l"}
"""The words for whole numbers with a sign, by their size."""


def integers_series(values: NDArray[Any], there: NDArray[np.bool_] | None) -> polars.Series:
    """Return a column of whole numbers with a sign; null where none is there. They are shared."""
    import polars

    values = np.ascontiguousarray(values)
    nulls = 0 if there is None else len(values) - int(np.count_nonzero(there))
    bits = np.packbits(there, bitorder="little") if there is not None and nulls else None
    node = ArrowArray(_INTEGERS[values.itemsize], len(values), [bits, values], nulls=nulls)
    return polars.Series(values=_Exported(node))


def headers_series(column: Headers) -> polars.Series | None:
    """Return a column of headers; None where a key is more than ASCII, and so perhaps no text."""
    import polars

    total = int(column.count.sum())
    first = int(column.first[0]) if len(column) else 0
    of_these = slice(first, first + total)
    keys = _bytes(_part(column.keys, of_these), b"U")
    if not keys.buffers[2].tobytes().isascii():
        return None
    values = _bytes(_part(column.values, of_these), b"Z")
    keys.name, values.name = b"key", b"value"
    pairs = ArrowArray(b"+s", total, [None], [keys, values], name=b"item")
    offsets = np.zeros(len(column) + 1, np.int64)
    np.cumsum(column.count, out=offsets[1:])
    return polars.Series(values=_Exported(ArrowArray(b"+L", len(column), [None, offsets], [pairs])))


def _part(column: Slices, part: slice) -> Slices:
    return Slices(column.start[part], column.length[part], column.buffers)


@dataclass(slots=True)
class ArrowArray:
    """
    An array, as the interface describes it.

    Attributes:
        format: Its type: `s`, `i` and `l` integers, `Z` bytes and `U` text with offsets of 64 bits,
            `+L` lists, `+s` structs.
        length: Its values.
        buffers: Which of them are there (bits), offsets, contents; as the type has them.
        children: The arrays it is made of.
        nulls: How many values are null.
        name: Of a child.
    """

    format: bytes
    length: int
    buffers: list[NDArray[Any] | None]
    children: list[ArrowArray] = field(default_factory=list)
    nulls: int = 0
    name: bytes = b""


def gather_bytes(column: Slices) -> tuple[NDArray[np.int64], Bytes]:
    """Put the bytes of a column one behind another; return where each begins, and the bytes."""
    start = np.ascontiguousarray(column.start)
    length = np.where(start == NONE, 0, column.length)
    offsets = np.zeros(len(column) + 1, np.int64)
    np.cumsum(length, out=offsets[1:])
    pool = np.empty(int(offsets[-1]), np.uint8)
    of = column.buffers
    _gather(of.data, of.carry_over, of.arena, start, offsets, pool, work=len(column) * 2)
    return offsets, pool


def _bytes(column: Slices, word: bytes) -> Any:
    """Return a column of bytes as a node."""
    offsets, pool = gather_bytes(column)
    there = column.start != NONE
    nulls = len(column) - int(np.count_nonzero(there))
    bits = np.packbits(there, bitorder="little") if nulls else None
    return ArrowArray(word, len(column), [bits, offsets, pool], nulls=nulls)


@Kernel
def _gather(data: Any, held: Any, arena: Any, start: Any, offsets: Any, pool: Any) -> None:
    """Copy slices to their offsets."""
    beyond = len(data)
    further = beyond + len(held)
    for i in range(len(start)):
        at = offsets[i]
        length = offsets[i + 1] - at
        if length > 0:
            if start[i] < beyond:
                copy_bytes(pool, at, data, start[i], length)
            elif start[i] < further:
                copy_bytes(pool, at, held, start[i] - beyond, length)
            else:
                copy_bytes(pool, at, arena, start[i] - further, length)


class _Schema(ctypes.Structure):
    pass


class _Array(ctypes.Structure):
    pass


_LetGo = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_MAY_BE_NULL = 2

_Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_char_p),
    ("flags", ctypes.c_int64),
    ("children_count", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(_Schema))),
    ("dictionary", ctypes.POINTER(_Schema)),
    ("release", _LetGo),
    ("kept", ctypes.c_void_p),
]
_Array._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("buffers_count", ctypes.c_int64),
    ("children_count", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(_Array))),
    ("dictionary", ctypes.POINTER(_Array)),
    ("release", _LetGo),
    ("kept", ctypes.c_void_p),
]

_kept: dict[int, Any] = {}
"""What arrays that are in use point to, by a number that they carry."""

_numbers = count(1)


def _let_go_of_schema(address: int) -> None:
    _Schema.from_address(address).release = _LetGo()


def _let_go_of_array(address: int) -> None:
    array = _Array.from_address(address)
    _kept.pop(array.kept or 0, None)
    array.release = _LetGo()


_release_schema, _release_array = _LetGo(_let_go_of_schema), _LetGo(_let_go_of_array)


def _pointers(kind: Any, structs: list[Any]) -> Any:
    return (ctypes.POINTER(kind) * len(structs))(*map(ctypes.pointer, structs))


def _schema_of(node: ArrowArray, keep: list[Any]) -> _Schema:
    """Return the struct that tells a node's type; `keep` gets what it points to."""
    children = _pointers(_Schema, [_schema_of(child, keep) for child in node.children])
    out = _Schema(
        format=node.format,
        name=node.name,
        flags=_MAY_BE_NULL,
        children_count=len(children),
        children=children,
        release=_release_schema,
    )
    keep += [node.format, node.name, children, out]
    return out


def _array_of(node: ArrowArray, keep: list[Any]) -> _Array:
    """Return the struct that tells where a node's values are."""
    children = _pointers(_Array, [_array_of(child, keep) for child in node.children])
    places = [None if each is None else each.ctypes.data for each in node.buffers]
    buffers = (ctypes.c_void_p * len(places))(*places)
    out = _Array(
        length=node.length,
        null_count=node.nulls,
        buffers_count=len(buffers),
        children_count=len(children),
        buffers=buffers,
        children=children,
        release=_release_array,
    )
    keep += [node.buffers, children, buffers, out]
    return out


class _Exported:
    """Hands a node over; polars asks it as it asks pyarrow's arrays."""

    def __init__(self, node: ArrowArray) -> None:
        # The type is looked at once, while this object is there; the values stay in use.
        self._of_schema: list[Any] = []
        of_array: list[Any] = []
        self._schema = _schema_of(node, self._of_schema)
        self._array = _array_of(node, of_array)
        self._array.kept = next(_numbers)
        _kept[self._array.kept] = of_array

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        return _capsule(self._schema, b"arrow_schema"), _capsule(self._array, b"arrow_array")


_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


def _capsule(struct: ctypes.Structure, name: bytes) -> object:
    return _new_capsule(ctypes.addressof(struct), name, None)
