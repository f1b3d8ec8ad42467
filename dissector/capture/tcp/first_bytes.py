"""The first bytes of each stream, which tell its protocol."""

from __future__ import annotations

import numpy as np

from dissector.capture.columns import DATA, IN_WINDOW, Chunks, Int64s
from dissector.kernel import Kernel
from dissector.kernel.arrays import I8, I64, U8, I64Table

FIRST_BYTES = 7
"""How many are kept: a whole TLS alert."""

_COUNT_AT = 8 * FIRST_BYTES


class FirstBytes:
    """
    The first bytes of the streams of all connections.

    Of a stream that begins with a gap, or within a connection, they are those after it.
    """

    def __init__(self) -> None:
        self._rows: Int64s = np.zeros((0, 2), np.int64)

    def add(self, chunks: Chunks) -> None:
        """Keep the first bytes of streams that begin in these chunks."""
        if not len(chunks):
            return
        size = int(chunks.connection.max()) + 1
        if size > len(self._rows):
            rows = np.zeros((max(size, 2 * len(self._rows)), 2), np.int64)
            rows[: len(self._rows)] = self._rows
            self._rows = rows
        _keep_first(
            chunks.data,
            chunks.carry_over,
            chunks.connection,
            chunks.side,
            (chunks.kind == DATA).view(np.uint8) * (1 + (chunks.origin != IN_WINDOW)).astype("u1"),
            chunks.start,
            chunks.length,
            self._rows,
        )

    def retain(self, numbers: Int64s) -> None:
        """Drop all connections but these, in order; renumber each by its position."""
        rows = np.zeros((len(numbers), 2), np.int64)
        known = numbers < len(self._rows)
        rows[known] = self._rows[numbers[known]]
        self._rows = rows

    @property
    def first_byte(self) -> Int64s:
        """The first byte of both sides of each connection, [n, 2]; -1 without any."""
        count = self._rows >> _COUNT_AT
        byte = self._rows >> 8 * np.maximum(count - 1, 0) & 0xFF
        return np.where(count > 0, byte, -1)

    def of(self, connection: int, side: int) -> bytes:
        """Return the first bytes of a stream, as far as it has any."""
        if connection >= len(self._rows):
            return b""
        value = int(self._rows[connection, side])
        return (value & (1 << _COUNT_AT) - 1).to_bytes(FIRST_BYTES, "big")[
            FIRST_BYTES - (value >> _COUNT_AT) :
        ]


@Kernel
def _keep_first(
    data: U8,
    carry_over: U8,
    connection: I64,
    side: I8,
    place: U8,
    start: I64,
    length: I64,
    rows: I64Table,
) -> None:
    """
    Append the first bytes of chunks to the rows of their streams, a number for each.

    Args:
        data: Bytes of the window.
        carry_over: Bytes of earlier windows.
        connection: Number of the connection of each chunk.
        side: Its side.
        place: Where its bytes are: 1 in the window, 2 in the bytes of earlier ones, 0 nowhere.
        start: Their offset there.
        length: Number of bytes.
        rows: The bytes so far as a big-endian number, and their number in the highest byte.
    """
    for chunk in range(len(connection)):
        if place[chunk] == 0:
            continue
        value = rows[connection[chunk], side[chunk]]
        count = value >> _COUNT_AT
        if count >= FIRST_BYTES:
            continue
        value &= (1 << _COUNT_AT) - 1
        at = start[chunk]
        end = at + min(length[chunk], FIRST_BYTES - count)
        while at < end:
            byte = int(data[at]) if place[chunk] == 1 else int(carry_over[at])
            value = value << 8 | byte
            count += 1
            at += 1
        rows[connection[chunk], side[chunk]] = count << _COUNT_AT | value
