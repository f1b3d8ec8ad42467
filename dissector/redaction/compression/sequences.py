"""
Matches and literals of LZ77, as encoded by lz4 and snappy.

`exact` finds sequences with a wanted encoded size: bytes that could be copied are written as
literals until the size is right.

Source: lz4_Block_format.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

MIN_MATCH = 4
_MOST_SAVED = 32
"""Maximum number of bytes a shorter match may save."""


class Sequence(NamedTuple):
    """
    Literals, and the bytes that are copied behind them.

    Attributes:
        literals: Number of literals.
        match: Number of bytes copied; 0 only in the last sequence.
        offset: Distance of the copied bytes.
    """

    literals: int
    match: int
    offset: int


Cost = Callable[[Sequence], int]
"""Returns the encoded size of a sequence."""


def sequences_of(block: bytes | memoryview) -> list[Sequence]:
    """
    Return the sequences of a block of lz4.

    Raises:
        IndexError: The block ends early.
    """
    found, at = [], 0
    while at < len(block):
        token = block[at]
        literals, at = _length(block, token >> 4, at + 1)
        at += literals
        if at >= len(block):
            found.append(Sequence(literals, 0, 0))
            break
        offset = block[at] | block[at + 1] << 8
        match, at = _length(block, token & 15, at + 2)
        found.append(Sequence(literals, match + MIN_MATCH, offset))
    return found


def _length(block: bytes | memoryview, nibble: int, at: int) -> tuple[int, int]:
    if nibble < 15:
        return nibble, at
    total = nibble
    while block[at] == 255:
        total += 255
        at += 1
    return total + block[at], at + 1


def find_sequences(raw: bytes) -> list[Sequence]:
    """Return short sequences for bytes."""
    import lz4.block

    if not raw:
        return []
    block = lz4.block.compress(raw, mode="high_compression", compression=12, store_size=False)
    return sequences_of(block)


def grown(sequences: list[Sequence], cost: Cost, missing: int) -> tuple[list[Sequence], int]:
    """
    Return sequences of the same bytes that cost up to `missing` more; and the remaining size.

    Args:
        sequences: The last one has only literals.
        cost: The encoded size of a sequence.
        missing: Number of additional bytes.
    """
    out, before = list(sequences), -1
    while missing and missing != before:
        before = missing
        for at in range(len(out) - 2, -1, -1):
            for change in (_without_match, _with_shorter_match):
                if missing and at < len(out) - 1 and out[at].match:
                    missing -= change(out, at, cost, missing)
    return out, missing


def _without_match(out: list[Sequence], at: int, cost: Cost, missing: int) -> int:
    """Write the whole match of a sequence as literals, if that is not too much."""
    first, second = out[at], out[at + 1]
    literals = first.literals + first.match + second.literals
    joined = Sequence(literals, second.match, second.offset)
    more = cost(joined) - cost(first) - cost(second)
    if not 0 <= more <= missing:
        return 0
    out[at : at + 2] = [joined]
    return more


def _with_shorter_match(out: list[Sequence], at: int, cost: Cost, missing: int) -> int:
    """Write the end of a sequence's match as literals, as much of it as is wanted."""
    first, second = out[at], out[at + 1]
    most = min(first.match - MIN_MATCH, missing + _MOST_SAVED)
    for count in range(most, max(most - 2 * _MOST_SAVED, 0), -1):
        shorter = Sequence(first.literals, first.match - count, first.offset)
        longer = Sequence(second.literals + count, second.match, second.offset)
        more = cost(shorter) + cost(longer) - cost(first) - cost(second)
        if 0 <= more <= missing:
            out[at], out[at + 1] = shorter, longer
            return more
    return 0
