"""The steps of a pass as arrays, which kernels go over many at a time."""

from __future__ import annotations

import mmap
from array import array
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dissector.kernel import part

if TYPE_CHECKING:
    from replay.plan import Plan

Bytes: TypeAlias = NDArray[np.uint8]
Int32s: TypeAlias = NDArray[np.int32]
Ints: TypeAlias = NDArray[np.int64]

_ROOM_BYTES = 1 << 16
_KEPT_BYTES = 4 << 20


class Arrays:
    """
    What kernels must know of steps; all of it is shared with its owners, and nothing copied.

    Args:
        plan: The steps.
        is_done: For each, whether it has its answer.
        due_ns: When each is due, from the beginning of the pass; empty where they have no time.

    Attributes:
        frames: The requests, each followed by its answer.
        places: Where in them each request begins.
        sizes: How long it is.
        shapes: Which shape it has.
        causes: What steps must come after.
        cause_ends: Where in it that of each step ends; begins with 0.
        room: In which requests are written; where one does not fit, put a larger one in its place.
    """

    def __init__(self, plan: Plan, is_done: bytearray, due_ns: array[int]) -> None:
        self._view = plan.view()
        self._read_bytes = 0
        self.frames: Bytes = np.frombuffer(self._view, np.uint8)
        self.places, self.sizes, self.shapes = plan.columns("place", "request_bytes", "shape")
        self.causes: Int32s = np.frombuffer(plan.causes, np.int32)
        self.cause_ends: Ints = np.frombuffer(plan.cause_ends, np.int64)
        self.is_done: Bytes = np.frombuffer(is_done, np.uint8)
        self.due_ns: Ints = np.frombuffer(due_ns, np.int64)
        self.room: Bytes = np.empty(_ROOM_BYTES, np.uint8)
        self._scratch: Ints = np.empty(0, np.int64)

    def table(self, rows: int, columns: int) -> Ints:
        """Return a table for what a kernel tells; whoever asks next writes over it."""
        size = rows * columns
        if size > len(self._scratch):
            self._scratch = np.empty(size, np.int64)
        return self._scratch[:size].reshape(rows, columns)

    def have_read(self, size: int) -> None:
        """Count bytes of frames; what was read is let go of now and then, so memory stays free."""
        self._read_bytes += size
        if self._read_bytes > _KEPT_BYTES and isinstance(self._view, mmap.mmap):
            self._read_bytes = 0
            if hasattr(mmap, "MADV_DONTNEED"):
                self._view.madvise(mmap.MADV_DONTNEED)


@part
def number_at(source: Any, at: int, size: int) -> int:
    """Read a number of so many bytes, with its sign."""
    value: int = 0 | source[at]
    if value > 127:
        value -= 256
    for i in range(1, size):
        value = value * 256 + source[at + i]
    return value


@part
def put_number(target: Any, at: int, value: int, size: int) -> None:
    """Write a number of so many bytes."""
    for i in range(size):
        target[at + i] = value >> 8 * (size - 1 - i) & 255
