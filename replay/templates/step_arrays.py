"""The steps of a pass as arrays, for kernels that process many at a time."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dissector.capture.columns import Int64s
from dissector.engine.exchanges.stored_exchanges import release_pages
from dissector.kernel import device_function
from dissector.kernel.arrays import U8
from replay.templates.template_arrays import StepColumns

if TYPE_CHECKING:
    from replay.plan.plan import Plan

Bytes: TypeAlias = NDArray[np.uint8]
Int32s: TypeAlias = NDArray[np.int32]

BUFFER_BYTES = 1 << 16
MAPPED_BYTES = 4 << 20


class StepArrays:
    """
    The arrays of steps for kernels; they share the memory of their owners and copy nothing.

    Args:
        plan: The steps.
        is_done: For each step, whether it has its response.
        due_ns: Due time of each step since the start of the pass; empty without pacing.

    Attributes:
        frames: The requests, each followed by its response.
        positions: Offset of each request in `frames`.
        sizes: Size of each request.
        shapes: Shape of each request.
        dependencies: The dependencies of all steps.
        dependency_ends: End of the dependencies of each step in `dependencies`; begins with 0.
        buffer: Buffer for requests to be written; replace it with a larger one if one doesn't fit.
    """

    def __init__(self, plan: Plan, is_done: bytearray, due_ns: array[int]) -> None:
        self._view = plan.view()
        self._read_bytes = 0
        self.frames: Bytes = np.frombuffer(self._view, np.uint8)
        self.positions, self.sizes, self.shapes = plan.columns("place", "request_bytes", "shape")
        self.dependencies: Int32s = np.frombuffer(plan.causes, np.int32)
        self.dependency_ends: Int64s = np.frombuffer(plan.cause_ends, np.int64)
        self.is_done: Bytes = np.frombuffer(is_done, np.uint8)
        self.due_ns: Int64s = np.frombuffer(due_ns, np.int64)
        self.buffer: Bytes = np.empty(BUFFER_BYTES, np.uint8)

    @property
    def columns(self) -> StepColumns:
        """The arrays of steps, as kernels take them."""
        arrays = (
            *(self.frames, self.positions, self.sizes, self.shapes),
            *(self.dependencies, self.dependency_ends, self.is_done, self.due_ns),
        )
        return StepColumns._make(arrays)

    def release_read(self, size: int) -> None:
        """Count bytes of frames read; every few MB, release the mapped pages to save memory."""
        self._read_bytes += size
        if self._read_bytes > MAPPED_BYTES:
            self._read_bytes = 0
            release_pages(self._view)


@device_function
def number_at(source: U8, at: int, size: int) -> int:
    """Read a signed big-endian integer of `size` bytes."""
    value: int = 0 | source[at]
    if value > 127:
        value -= 256
    for i in range(1, size):
        value = value * 256 + source[at + i]
    return value


@device_function
def put_number(target: U8, at: int, value: int, size: int) -> None:
    """Write a big-endian integer of `size` bytes."""
    for i in range(size):
        target[at + i] = value >> 8 * (size - 1 - i) & 255
