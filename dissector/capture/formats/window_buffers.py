"""Memory for the windows of a capture that is used again, so that reading does not grow."""

from __future__ import annotations

import weakref
from math import prod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from dissector.capture.columns import Bytes

_MIN_BYTES = 1 << 16
"""What is smaller costs less new than kept."""

_KEPT = 3
"""How many pieces of one size are kept: windows that are alive at a time, as a rule."""


class BufferPool:
    """
    Gives arrays whose memory comes back once nobody holds them, nor a view of them.

    Fresh memory costs a page fault every few kilobytes, more than reading a file into it. Sizes are
    rounded up to powers of two; what is not touched takes no memory.
    """

    def __init__(self) -> None:
        self._free: dict[int, list[Bytes]] = {}

    def __reduce__(self) -> tuple[type[BufferPool], tuple[()]]:
        """Be saved without memory that is free."""
        return BufferPool, ()

    def acquire(self, dtype: DTypeLike, *shape: int) -> NDArray[Any]:
        """Return an array that holds anything."""
        size = prod(shape) * np.dtype(dtype).itemsize
        if size < _MIN_BYTES:
            return np.empty(shape, dtype)
        size = 1 << (size - 1).bit_length()
        free = self._free.setdefault(size, [])
        memory = free.pop() if free else np.empty(size, np.uint8)
        # Through a memoryview the array has a life of its own, that views of it prolong.
        array = np.frombuffer(memory.data, dtype, count=prod(shape))
        weakref.finalize(array, _give_back, free, memory).atexit = False
        return array.reshape(shape)


def _give_back(free: list[Bytes], memory: Bytes) -> None:
    if len(free) < _KEPT:
        free.append(memory)
