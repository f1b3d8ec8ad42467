"""
Matches and literals of LZ77, as encoded by lz4 and snappy, in blocks of a wanted size.

The library of lz4 finds short sequences. If the block is to be longer, bytes that could be copied
are written as literals until the size is right.

Source: lz4_Block_format.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dissector.kernel import Kernel, device_function
from dissector.kernel.arrays import U8
from dissector.redaction.compression.lz4_kernels import lz4_cost, write_lz4
from dissector.redaction.compression.sequence_arrays import LZ4, MIN_MATCH, Sequences
from dissector.redaction.compression.snappy_kernels import snappy_cost, write_snappy

_MOST_SAVED = 32
"""Maximum number of bytes a shorter match may save."""

_SHORTEST_BYTES = 3
"""Bytes of the shortest sequence, but for the last."""

_ENDS_EARLY = -1


@device_function
def _length(block: U8, nibble: int, at: int) -> tuple[int, int]:
    """Return a length, and where its bytes end: behind the end of a block that ends early."""
    if nibble < 15:
        return nibble, at
    total = 0 | nibble
    while at < len(block) and block[at] == 255:
        total += 255
        at += 1
    if at < len(block):
        total += block[at]
    return total, at + 1


@device_function
def _read(block: U8, found: Sequences) -> int:
    """Read the sequences of a block of lz4; return their number, or `_ENDS_EARLY`."""
    count, at = 0, 0
    while at < len(block):
        if count >= len(found.literals):
            return _ENDS_EARLY
        token = 0 | block[at]
        literals, at = _length(block, token >> 4, at + 1)
        if at > len(block):
            return _ENDS_EARLY
        at += literals
        found.literals[count] = literals
        found.match[count] = 0
        found.offset[count] = 0
        if at < len(block):
            if at + 1 >= len(block):
                return _ENDS_EARLY
            found.offset[count] = block[at] | block[at + 1] << 8
            match, at = _length(block, token & 15, at + 2)
            if at > len(block):
                return _ENDS_EARLY
            found.match[count] = match + MIN_MATCH
        count += 1
    return count


@device_function
def _raw_size(found: Sequences, count: int) -> int:
    size = 0
    for at in range(count):
        size += found.literals[at] + found.match[at]
    return size


@device_function
def _cost(codec: int, literals: int, match: int, offset: int) -> int:
    """Return the encoded size of a sequence."""
    if codec == LZ4:
        return lz4_cost(literals, match)
    return snappy_cost(literals, match, offset)


@device_function
def _without_match(codec: int, found: Sequences, at: int, missing: int) -> int:
    """Write the whole match of a sequence as literals, if that is not too much."""
    second = found.after[at]
    first_cost = _cost(codec, found.literals[at], found.match[at], found.offset[at])
    second_cost = _cost(codec, found.literals[second], found.match[second], found.offset[second])
    literals = found.literals[at] + found.match[at] + found.literals[second]
    more = _cost(codec, literals, found.match[second], found.offset[second])
    more -= first_cost + second_cost
    if more < 0 or more > missing:
        return 0
    found.literals[at] = literals
    found.match[at] = found.match[second]
    found.offset[at] = found.offset[second]
    found.after[at] = found.after[second]
    return more


@device_function
def _with_shorter_match(codec: int, found: Sequences, at: int, missing: int) -> int:
    """Write the end of a sequence's match as literals, as much of it as is wanted."""
    second = found.after[at]
    literals, match, offset = found.literals[at], found.match[at], found.offset[at]
    after, second_match = found.literals[second], found.match[second]
    second_offset = found.offset[second]
    before = _cost(codec, literals, match, offset) + _cost(
        codec, after, second_match, second_offset
    )
    count = min(match - MIN_MATCH, missing + _MOST_SAVED)
    least = max(count - 2 * _MOST_SAVED, 0)
    while count > least:
        more = _cost(codec, literals, match - count, offset) - before
        more += _cost(codec, after + count, second_match, second_offset)
        if more >= 0 and more <= missing:
            found.match[at] = match - count
            found.literals[second] = after + count
            return more
        count -= 1
    return 0


@device_function
def _grow(codec: int, found: Sequences, count: int, missing: int) -> tuple[int, int]:
    """
    Let sequences cost up to `missing` more.

    Args:
        codec: SNAPPY or LZ4.
        found: The sequences; the last one has only literals.
        count: Their number.
        missing: Number of additional bytes.

    Returns:
        The number of sequences, and the remaining bytes.
    """
    before = -1
    while missing > 0 and missing != before:
        before = missing
        for at in range(count):
            found.after[at] = at + 1
        at = count - 1
        while at > 0:
            at -= 1
            if missing > 0 and found.after[at] < count and found.match[at] > 0:
                missing -= _without_match(codec, found, at, missing)
            if missing > 0 and found.after[at] < count and found.match[at] > 0:
                missing -= _with_shorter_match(codec, found, at, missing)
        count = _without_gaps(found, count)
    return count, missing


@device_function
def _without_gaps(found: Sequences, count: int) -> int:
    """Move sequences together, of which some were joined; return their number."""
    at, kept = 0, 0
    while at < count:
        after = found.after[at]
        found.literals[kept] = found.literals[at]
        found.match[kept] = found.match[at]
        found.offset[kept] = found.offset[at]
        at = after
        kept += 1
    return kept


@Kernel
def raw_size(block: U8, found: Sequences) -> int:
    """Return the number of bytes that a block of lz4 has; -1 if it ends early."""
    count = _read(block, found)
    return _ENDS_EARLY if count == _ENDS_EARLY else _raw_size(found, count)


@Kernel
def read_block(codec: int, block: U8, raw: U8, found: Sequences) -> int:
    """
    Return what the sequences of a piece cost; negative if they are not those of its bytes.

    Args:
        codec: SNAPPY or LZ4.
        block: The piece as a block of lz4.
        raw: The piece.
        found: Space for sequences.
    """
    count = _read(block, found)
    if count == _ENDS_EARLY or _raw_size(found, count) != len(raw):
        return _ENDS_EARLY
    cost = 0
    for at in range(count):
        cost += _cost(codec, found.literals[at], found.match[at], found.offset[at])
    return cost


@Kernel
def write_block(codec: int, block: U8, raw: U8, found: Sequences, missing: int, out: U8) -> int:
    """
    Write a piece, longer by up to some bytes than its sequences cost.

    Args:
        codec: SNAPPY or LZ4.
        block: The piece as a block of lz4, of which `read_block` has given the cost.
        raw: The piece.
        found: Space for sequences.
        missing: Number of additional bytes.
        out: Gets the piece: has room for its cost and these.

    Returns:
        The number of bytes that are still missing; negative if something did not fit.
    """
    count, missing = _grow(codec, found, _read(block, found), missing)
    if codec == LZ4:
        return missing if write_lz4(raw, found, count, out) else _ENDS_EARLY
    return write_snappy(raw, found, count, missing, out)


def fitted(codec: int, pieces: Sequence[bytes], size: int) -> bytes | None:
    """
    Return pieces, one after the other, as blocks of a size.

    Args:
        codec: SNAPPY or LZ4.
        pieces: Bytes; of lz4 only one piece.
        size: Bytes of all blocks.
    """
    if not all(pieces):
        return None
    read = [_Piece.of(codec, each) for each in pieces]
    missing = size - sum(each.cost for each in read)
    if missing < 0 or any(each.cost < 0 for each in read):
        return None
    out = []
    for each in read:
        written = np.empty(each.cost + missing, np.uint8)
        left = write_block(codec, each.block, each.raw, each.space, missing, written)
        if left < 0:
            return None
        out.append(written[: each.cost + missing - left].tobytes())
        missing = left
    return None if missing else b"".join(out)


class _Piece(NamedTuple):
    """A piece, as a block of lz4, what it costs, and space for its sequences."""

    raw: NDArray[np.uint8]
    block: NDArray[np.uint8]
    cost: int
    space: Sequences

    @classmethod
    def of(cls, codec: int, piece: bytes) -> _Piece:
        import lz4.block

        found = lz4.block.compress(piece, mode="high_compression", compression=12, store_size=False)
        raw, block = np.frombuffer(piece, np.uint8), np.frombuffer(found, np.uint8)
        space = space_for(len(block))
        return cls(raw, block, read_block(codec, block, raw, space), space)


def space_for(block_bytes: int) -> Sequences:
    """Return space for the sequences of a block of lz4."""
    return Sequences._make(np.empty((4, block_bytes // _SHORTEST_BYTES + 2), np.int64))
