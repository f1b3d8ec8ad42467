"""
Types of the arrays in kernels: contiguous, of one item type and number of dimensions.

In kernels that run as Python they are memoryviews, whose items are Python integers.
"""

from __future__ import annotations

from typing import TypeAlias

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
