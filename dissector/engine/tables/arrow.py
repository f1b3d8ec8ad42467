"""
Exports columns of bytes to polars, without an object for each value.

polars takes arrays of the Arrow C data interface: two structs that describe buffers, and a function
that releases them.

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
from dissector.kernel.arrays import I64, U8
from dissector.kernel.memcpy import copy_bytes

if TYPE_CHECKING:
    import polars

Bytes: TypeAlias = NDArray[np.uint8]


def bytes_series(column: Slices) -> polars.Series:
    """Return a column of bytes as a series; the bytes are copied."""
    from dissector.polars_extra import polars

    return polars.Series(values=_Exported(_bytes(column, b"Z")))


def text_series(column: Slices) -> polars.Series:
    """Return a column of UTF-8 texts as a series; the bytes are copied."""
    from dissector.polars_extra import polars

    return polars.Series(values=_Exported(_bytes(column, b"U")))


_INTEGERS = {2: b"s", 4: b"i", 8: b"l"}
"""Arrow's format strings for signed integers, by size in bytes."""


def integers_series(values: NDArray[Any], is_set: NDArray[np.bool_] | None) -> polars.Series:
    """Return signed integers as a series, null where `is_set` is false; the array is shared."""
    from dissector.polars_extra import polars

    values = np.ascontiguousarray(values)
    nulls = 0 if is_set is None else len(values) - int(np.count_nonzero(is_set))
    validity = np.packbits(is_set, bitorder="little") if is_set is not None and nulls else None
    array = ArrowArray(_INTEGERS[values.itemsize], len(values), [validity, values], nulls=nulls)
    return polars.Series(values=_Exported(array))


def headers_series(column: Headers) -> polars.Series | None:
    """Return a column of headers as a series; None if a key is not ASCII, so maybe not UTF-8."""
    from dissector.polars_extra import polars

    offsets = np.zeros(len(column) + 1, np.int64)
    np.cumsum(column.count, out=offsets[1:])
    items = column.items
    keys = _bytes(_chosen(column.keys, items), b"U")
    if not keys.buffers[2].tobytes().isascii():
        return None
    values = _bytes(_chosen(column.values, items), b"Z")
    keys.name, values.name = b"key", b"value"
    pairs = ArrowArray(b"+s", len(items), [None], [keys, values], name=b"item")
    return polars.Series(values=_Exported(ArrowArray(b"+L", len(column), [None, offsets], [pairs])))


def _chosen(column: Slices, items: NDArray[np.int64]) -> Slices:
    return Slices(column.start[items], column.length[items], column.buffers)


@dataclass(slots=True, eq=False, repr=False)
class ArrowArray:
    """
    An array, as the interface describes it.

    Attributes:
        format: Its type: `s`, `i` and `l` integers, `Z` bytes and `U` text with offsets of 64 bits,
            `+L` lists, `+s` structs.
        length: Its number of values.
        buffers: Validity bits, offsets, contents; as the type has them.
        children: Its child arrays.
        nulls: Number of null values.
        name: Of a child.
    """

    format: bytes
    length: int
    buffers: list[NDArray[Any] | None]
    children: list[ArrowArray] = field(default_factory=list)
    nulls: int = 0
    name: bytes = b""


def gather_bytes(column: Slices) -> tuple[NDArray[np.int64], Bytes]:
    """Copy the bytes of a column one behind another; return their offsets and the bytes."""
    start = np.ascontiguousarray(column.start)
    length = np.where(start == NONE, 0, column.length)
    offsets = np.zeros(len(column) + 1, np.int64)
    np.cumsum(length, out=offsets[1:])
    pool = np.empty(int(offsets[-1]), np.uint8)
    buffers = column.buffers
    _gather(buffers.data, buffers.carry_over, buffers.arena, start, offsets, pool)
    return offsets, pool


def _bytes(column: Slices, format: bytes) -> Any:
    """Return a column of bytes as an array."""
    offsets, pool = gather_bytes(column)
    is_set = column.start != NONE
    nulls = len(column) - int(np.count_nonzero(is_set))
    validity = np.packbits(is_set, bitorder="little") if nulls else None
    return ArrowArray(format, len(column), [validity, offsets, pool], nulls=nulls)


@Kernel
def _gather(data: U8, carry_over: U8, arena: U8, start: I64, offsets: I64, pool: U8) -> None:
    """Copy slices to their offsets."""
    carry_over_start = len(data)
    arena_start = carry_over_start + len(carry_over)
    for i in range(len(start)):
        at = offsets[i]
        length = offsets[i + 1] - at
        if length > 0:
            if start[i] < carry_over_start:
                copy_bytes(pool, at, data, start[i], length)
            elif start[i] < arena_start:
                copy_bytes(pool, at, carry_over, start[i] - carry_over_start, length)
            else:
                copy_bytes(pool, at, arena, start[i] - arena_start, length)


class _Schema(ctypes.Structure):
    pass


class _Array(ctypes.Structure):
    pass


_Release = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_MAY_BE_NULL = 2

_Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_char_p),
    ("flags", ctypes.c_int64),
    ("children_count", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(_Schema))),
    ("dictionary", ctypes.POINTER(_Schema)),
    ("release", _Release),
    ("private_data", ctypes.c_void_p),
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
    ("release", _Release),
    ("private_data", ctypes.c_void_p),
]

_exported: dict[int, Any] = {}
"""The memory that exported arrays point to, by the number in their private data."""

_numbers = count(1)


def exported_count() -> int:
    """Return the number of exported arrays with memory still in use."""
    return len(_exported)


_RELEASED = _Release()

# A series may be the last to go at the end of the interpreter, after the names of this module: so
# these functions use no names, and what polars calls is never freed.


def _free_schema(address: int, at: Any = _Schema.from_address, released: Any = _RELEASED) -> None:
    at(address).release = released


def _free_array(
    address: int,
    at: Any = _Array.from_address,
    released: Any = _RELEASED,
    free: Any = _exported.pop,
) -> None:
    array = at(address)
    free(array.private_data or 0, None)
    array.release = released


_release_schema, _release_array = _Release(_free_schema), _Release(_free_array)
for _function in (_release_schema, _release_array):
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_function))


def _pointers(kind: Any, structs: list[Any]) -> Any:
    return (ctypes.POINTER(kind) * len(structs))(*map(ctypes.pointer, structs))


def _schema_of(array: ArrowArray, alive: list[Any]) -> _Schema:
    """Return the struct with an array's type; referenced memory is appended to `alive`."""
    children = _pointers(_Schema, [_schema_of(child, alive) for child in array.children])
    out = _Schema(
        format=array.format,
        name=array.name,
        flags=_MAY_BE_NULL,
        children_count=len(children),
        children=children,
        release=_release_schema,
    )
    alive += [array.format, array.name, children, out]
    return out


def _array_of(array: ArrowArray, alive: list[Any]) -> _Array:
    """Return the struct with the addresses of an array's values."""
    children = _pointers(_Array, [_array_of(child, alive) for child in array.children])
    addresses = [None if each is None else each.ctypes.data for each in array.buffers]
    buffers = (ctypes.c_void_p * len(addresses))(*addresses)
    out = _Array(
        length=array.length,
        null_count=array.nulls,
        buffers_count=len(buffers),
        children_count=len(children),
        buffers=buffers,
        children=children,
        release=_release_array,
    )
    alive += [array.buffers, children, buffers, out]
    return out


class _Exported:
    """Exports an array by the interface that polars also uses for pyarrow's arrays."""

    def __init__(self, array: ArrowArray) -> None:
        # The type is read once, while this object exists; the values stay in use.
        self._of_schema: list[Any] = []
        alive: list[Any] = []
        self._schema = _schema_of(array, self._of_schema)
        self._array = _array_of(array, alive)
        self._array.private_data = next(_numbers)
        _exported[self._array.private_data] = alive

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        return _capsule(self._schema, b"arrow_schema"), _capsule(self._array, b"arrow_array")


_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


def _capsule(struct: ctypes.Structure, name: bytes) -> object:
    return _new_capsule(ctypes.addressof(struct), name, None)
