"""Kernels that find equal contents among many, and write the replacements of all."""

from __future__ import annotations

from typing import NamedTuple

from dissector.engine.facts.interning import InternIndex, hash_bytes, intern
from dissector.kernel import Kernel
from dissector.kernel.arrays import I64, U8
from dissector.kernel.memcpy import copy_bytes


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
