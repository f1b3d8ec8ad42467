"""
Kernels that replace the contents of records by keyed marks and filler, and set checksums.

A mark is the begin of SHAKE-256 of a head, which holds the key, and the content: the same as that
of `Pseudonyms.content`.
"""

from __future__ import annotations

from typing import NamedTuple

from dissector.engine.records.checksum import crc32c_of
from dissector.kernel import Kernel, device_function
from dissector.kernel.arrays import I64, U8
from dissector.kernel.keccak import LANES, RATE, absorb
from dissector.kernel.memcpy import copy_bytes
from dissector.protocol.records import layout

MARK_BYTES = 8
_FILLER = 120
_DOMAIN, _LAST = 0x1F, 0x80
_LETTERS = 26
_A, _TWO = 97, 50
_CRC_AT = layout.BATCH_CRC_FROM - 4


class Sponge(NamedTuple):
    """
    Space for digests.

    Attributes:
        head: Bytes before each content; fewer than a block.
        state: The numbers of the state.
        block: A block.
    """

    head: U8
    state: I64
    block: U8


@device_function
def _digest(source: U8, at: int, length: int, sponge: Sponge) -> int:
    """Return the first 8 bytes of the digest of a content, the first one in the lowest bits."""
    state, block = sponge.state, sponge.block
    for lane in range(LANES):
        state[lane] = 0
    filled = len(sponge.head)
    copy_bytes(block, 0, sponge.head, 0, filled)
    end = at + length
    while end - at >= RATE - filled:
        copy_bytes(block, filled, source, at, RATE - filled)
        absorb(state, block)
        at += RATE - filled
        filled = 0
    copy_bytes(block, filled, source, at, end - at)
    filled += end - at
    for place in range(filled, RATE):
        block[place] = 0
    block[filled] = _DOMAIN
    block[RATE - 1] = block[RATE - 1] | _LAST
    absorb(state, block)
    return state[0]


@device_function
def _mark(target: U8, at: int, length: int, sponge: Sponge) -> None:
    """Replace a content by its mark and filler."""
    digest = _digest(target, at, length, sponge)
    for place in range(length):
        byte = _FILLER
        if place < MARK_BYTES:
            index = digest >> 8 * place & 31
            byte = _A + index if index < _LETTERS else _TWO + index - _LETTERS
        target[at + place] = byte


@Kernel
def mark_contents(data: U8, arena: U8, at: I64, length: I64, sponge: Sponge) -> None:
    """Replace contents; addresses from the end of `data` on are in `arena`."""
    for i in range(len(at)):
        if at[i] < len(data):
            _mark(data, at[i], length[i], sponge)
        else:
            _mark(arena, at[i] - len(data), length[i], sponge)


@Kernel
def shorten_marks(arena: U8, at: I64, length: I64, mark_bytes: int) -> None:
    """Turn all of each mark but so many bytes into filler."""
    for i in range(len(at)):
        for place in range(mark_bytes, min(length[i], MARK_BYTES)):
            arena[at[i] + place] = _FILLER


@Kernel
def write_crcs(data: U8, start: I64, end: I64, table: I64) -> None:
    """Write the right checksums of batches of magic 2."""
    for i in range(len(start)):
        crc = crc32c_of(data, start[i] + layout.BATCH_CRC_FROM, end[i], table)
        for place in range(4):
            data[start[i] + _CRC_AT + place] = crc >> 24 - 8 * place & 255
