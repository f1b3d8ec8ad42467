"""The kernel that copies the frames of a window."""

from __future__ import annotations

from typing import NamedTuple

from dissector.kernel import Kernel
from dissector.kernel.arrays import I64, U8
from dissector.kernel.memcpy import copy_bytes

SIZE_BYTES = 4
"""Bytes of the size before a frame."""


class FrameArrays(NamedTuple):
    """
    Frames to copy.

    Attributes:
        start: Address of each frame.
        captured: Its captured bytes.
        size: Its declared size.
        at: Where its size goes, before its bytes.
    """

    start: I64
    captured: I64
    size: I64
    at: I64


@Kernel
def copy_frames(data: U8, carry_over: U8, frames: FrameArrays, out: U8) -> None:
    """Copy frames, each behind its size."""
    for i in range(len(frames.start)):
        start, at, size = frames.start[i], frames.at[i], frames.size[i]
        for place in range(SIZE_BYTES):
            out[at + place] = size >> 8 * (SIZE_BYTES - 1 - place) & 255
        source = data
        if start >= len(data):
            source = carry_over
            start -= len(data)
        copy_bytes(out, at + SIZE_BYTES, source, start, frames.captured[i])
