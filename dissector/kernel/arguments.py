"""Conversion of kernel arguments: for kernels that run as Python, and for compiled code."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple, TypeAlias

import numpy as np

_DTYPES = {
    np.dtype(name): np.dtype(name)
    for name in (
        *("bool", "int8", "int16", "int32", "int64"),
        *("uint8", "uint16", "uint32", "uint64", "float64"),
    )
}
"""
Item types of arrays. Equal dtypes may be distinct objects; compiled code compares these by
address.
"""

_INT64_LIMIT = 2**63

_NOT_CONTIGUOUS = "kernels take C-contiguous, aligned arrays"


class ArrayType(NamedTuple):
    """Item type and number of dimensions of an array."""

    dtype: str
    ndim: int


Types: TypeAlias = tuple[ArrayType | None, ...]
"""Types of a kernel's arguments; None for an integer."""


class SignatureMismatch(Exception):
    """The arguments do not have the types that the code was compiled for."""


def to_python(argument: Any) -> Any:
    """
    Return an argument for a kernel that runs as Python: a memoryview, or a Python integer.

    Raises:
        TypeError: The argument is neither an integer nor a C-contiguous array.
    """
    if not isinstance(argument, np.ndarray):
        return operator.index(argument)
    memory = (argument if argument.dtype != np.bool_ else argument.view(np.uint8)).data
    if not memory.c_contiguous:
        raise TypeError(_NOT_CONTIGUOUS)
    return memory


def to_native(argument: Any) -> Any:
    """
    Return an argument for compiled code: a numpy array of a known dtype, or an integer.

    Raises:
        TypeError: The argument is neither an integer of 64 bits nor a contiguous array of numbers.
    """
    if not isinstance(argument, np.ndarray):
        number = operator.index(argument)
        if not -_INT64_LIMIT <= number < _INT64_LIMIT:
            raise TypeError(f"kernels take numbers of 64 bits, not {number}")
        return number
    dtype, flags = _DTYPES.get(argument.dtype), argument.flags
    if dtype is None or not argument.ndim:
        raise TypeError(f"kernels take arrays of numbers, not of {argument.dtype}")
    if not (flags.c_contiguous and flags.aligned):
        raise TypeError(_NOT_CONTIGUOUS)
    is_exact = type(argument) is np.ndarray and argument.dtype is dtype
    return argument if is_exact else argument.view(dtype, np.ndarray)


def type_of(argument: Any) -> ArrayType | None:
    """Return the type of an argument that `to_native` returned."""
    return (
        ArrayType(argument.dtype.str, argument.ndim) if isinstance(argument, np.ndarray) else None
    )
