"""Kernels that copy the frames of a window, and replace equal contents in them at once."""

from __future__ import annotations

from typing import NamedTuple

from dissector.engine.facts.interning import InternIndex, hash_bytes, intern
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


class ContentArrays(NamedTuple):
    """
    Contents to replace.

    Attributes:
        start: Address of each content.
        length: Its bytes.
        kind: Its kind.
        at: Where its replacement goes.
        entry: Receives its entry among the distinct contents, or `FULL`, `TOO_MANY_COLLISIONS`.
    """

    start: I64
    length: I64
    kind: I64
    at: I64
    entry: I64


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


@Kernel
def number_contents(
    data: U8, carry_over: U8, contents: ContentArrays, first: int, index: InternIndex, pool: U8
) -> int:
    """Number the distinct contents from a row on; return the row that lacked room, or the end."""
    for i in range(first, len(contents.start)):
        start, length, kind = contents.start[i], contents.length[i], contents.kind[i]
        source = data
        if start >= len(data):
            source = carry_over
            start -= len(data)
        key = hash_bytes(source, start, length, kind)
        entry = intern(source, start, length, kind, key, index, pool)
        contents.entry[i] = entry
        if entry == -1:
            return i
    return len(contents.start)


@Kernel
def place_contents(
    out: U8, more: U8, contents: ContentArrays, index: InternIndex, replaced: U8
) -> None:
    """
    Write the replacements of contents.

    Args:
        out: Receives them,
        more: and those with addresses from the end of `out` on.
        contents: The contents.
        index: The distinct ones.
        replaced: Has the replacements where the pool has the originals.
    """
    for i in range(len(contents.start)):
        known = index.entries[contents.entry[i]]
        at, length = contents.at[i], contents.length[i]
        if at < len(out):
            copy_bytes(out, at, replaced, known.start, length)
        else:
            copy_bytes(more, at - len(out), replaced, known.start, length)
