"""A pool of memory for the windows of a capture, so that reading does not grow."""

from __future__ import annotations

import mmap
import sys
import weakref
from contextlib import suppress
from math import prod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from dissector.capture.columns import Bytes

_MIN_BYTES = 1 << 16
"""Below this size a new allocation costs less than the pool."""

_MIN_HUGE_BYTES = 1 << 22
"""From this size on memory is asked for in pages of 2 MB, as numpy does: few page faults."""

# Large pages are for private memory; Windows knows neither.
_PRIVATE = {} if sys.platform == "win32" else {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS}
_HUGE_PAGES: int | None = getattr(mmap, "MADV_HUGEPAGE", None)

_MAX_FREE = 3
"""Maximum number of free blocks kept per size: usually the number of concurrent windows."""


class BufferPool:
    """
    Arrays from a pool: memory returns to it when neither they nor views of them are referenced.

    Fresh memory costs a page fault every few kilobytes, more than reading a file into it. Sizes are
    rounded up to powers of two; untouched pages take no memory.
    """

    def __init__(self) -> None:
        self._free: dict[int, list[Bytes]] = {}

    @property
    def free_count(self) -> int:
        """The number of buffers in the pool."""
        return sum(map(len, self._free.values()))

    def __reduce__(self) -> tuple[type[BufferPool], tuple[()]]:
        """Pickle without the free memory."""
        return BufferPool, ()

    def acquire(self, dtype: DTypeLike, *shape: int) -> NDArray[Any]:
        """Return an array with arbitrary content."""
        size = prod(shape) * np.dtype(dtype).itemsize
        if size < _MIN_BYTES:
            return np.empty(shape, dtype)
        size = 1 << (size - 1).bit_length()
        free = self._free.setdefault(size, [])
        memory = free.pop() if free else np.empty(size, np.uint8)
        # Through a memoryview the array has an independent lifetime, which views of it prolong.
        array = np.frombuffer(memory.data, dtype, count=prod(shape))
        weakref.finalize(array, _release, free, memory).atexit = False
        return array.reshape(shape)


def _release(free: list[Bytes], memory: Bytes) -> None:
    if len(free) < _MAX_FREE:
        free.append(memory)


def single_use(size: int) -> Bytes:
    """
    Return memory with arbitrary content, which is freed after the last reference.

    For an amount of bytes that changes from window to window: a pool would hold the largest of
        each.
    """
    if size < _MIN_BYTES:
        return np.empty(size, np.uint8)
    # Not from the C library, which retains memory below a limit of up to 32 MB.
    memory = mmap.mmap(-1, size, **_PRIVATE)
    if size >= _MIN_HUGE_BYTES and _HUGE_PAGES is not None:
        with suppress(OSError):  # a kernel without them
            memory.madvise(_HUGE_PAGES)
    return np.frombuffer(memory, np.uint8)
