"""
Types of the arrays in kernels: contiguous, of one item type and number of dimensions.

In kernels that run as Python they are memoryviews with Python integers as items.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

U8: TypeAlias = "memoryview[int]"
"""Bytes, or flags: uint8 or bool."""

I8: TypeAlias = "memoryview[int]"
"""A column of int8."""

I32: TypeAlias = "memoryview[int]"
"""A column of int32."""

I64: TypeAlias = "memoryview[int]"
"""A column of int64."""

I8Table: TypeAlias = "memoryview[int]"
"""Two dimensions of int8."""

I32Table: TypeAlias = "memoryview[int]"
"""Two dimensions of int32."""

I64Table: TypeAlias = "memoryview[int]"
"""Two dimensions of int64."""

I64Cube: TypeAlias = "memoryview[int]"
"""Three dimensions of int64."""

AnyColumn: TypeAlias = "memoryview[int]"
"""One dimension; a device function is compiled for each item type that it is called with."""


NONE = -(2**63)
"""The null of integer columns."""


class Buffers(NamedTuple):
    """
    The bytes of a window, with one address for each.

    Attributes:
        data: The bytes as captured.
        carry_over: Bytes carried over from earlier windows: addresses from the end of `data` on.
        arena: Decompressed or rendered bytes: addresses from the end of `carry_over` on.
    """

    data: U8
    carry_over: U8
    arena: U8
