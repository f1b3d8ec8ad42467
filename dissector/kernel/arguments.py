"""Arguments of kernels, as Python and as compiled code take them."""

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
"""What arrays may hold. There may be several objects for one dtype; compiled code knows these."""

_MOST = 2**63

_LOOSE = "kernels take arrays whose items lie in order, one behind the other"


class ArrayType(NamedTuple):
    """Type of an array."""

    dtype: str
    ndim: int


Types: TypeAlias = tuple[ArrayType | None, ...]
"""Types of arguments; None for a number."""


class SignatureMismatch(Exception):
    """The arguments are not of the types that some code was compiled for."""


def to_python(argument: Any) -> Any:
    """
    Return what stands for an argument in Python: a memoryview, or Python's own number.

    Raises:
        TypeError: It is neither a whole number nor an array without gaps.
    """
    if not isinstance(argument, np.ndarray):
        return operator.index(argument)
    seen = (argument if argument.dtype != np.bool_ else argument.view(np.uint8)).data
    if not seen.c_contiguous:
        raise TypeError(_LOOSE)
    return seen


def to_native(argument: Any) -> Any:
    """
    Return an argument as compiled code takes it: a plain array or a number.

    Raises:
        TypeError: It is neither.
    """
    if not isinstance(argument, np.ndarray):
        number = operator.index(argument)
        if not -_MOST <= number < _MOST:
            raise TypeError(f"kernels take numbers of 64 bits, not {number}")
        return number
    dtype, flags = _DTYPES.get(argument.dtype), argument.flags
    if dtype is None or not argument.ndim:
        raise TypeError(f"kernels take arrays of numbers, not of {argument.dtype}")
    if not (flags.c_contiguous and flags.aligned):
        raise TypeError(_LOOSE)
    is_plain = type(argument) is np.ndarray and argument.dtype is dtype
    return argument if is_plain else argument.view(dtype, np.ndarray)


def type_of(argument: Any) -> ArrayType | None:
    """Return the type of a plain argument."""
    return (
        ArrayType(argument.dtype.str, argument.ndim) if isinstance(argument, np.ndarray) else None
    )
