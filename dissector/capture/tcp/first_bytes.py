"""
The first bytes of each stream, which tell its protocol.

Of a stream that begins with a gap, or within a connection, they are those after it. They are a
big-endian number, with their count in the highest byte.
"""

from __future__ import annotations

import numpy as np

from dissector.capture.columns import DATA, IN_WINDOW, Chunks, Int64s
from dissector.capture.tcp.tcp_rows import ConnectionRow
from dissector.kernel import Kernel
from dissector.kernel.arrays import I8, I64, U8
from dissector.kernel.named_rows import RowArray, Rows

FIRST_BYTES = 7
"""How many are kept: a whole TLS alert."""

_COUNT_AT = 8 * FIRST_BYTES


def keep_first_bytes(chunks: Chunks, connections: RowArray) -> None:
    """Keep the first bytes of streams that begin in chunks, whose connections are these rows."""
    place = (chunks.kind == DATA).view(np.uint8) * (1 + (chunks.origin != IN_WINDOW)).astype("u1")
    own = chunks.connection, chunks.side, place, chunks.start, chunks.length
    _keep_first(chunks.data, chunks.carry_over, *own, connections)


def first_bytes(kept: int) -> bytes:
    """Return the first bytes of a stream."""
    value = (kept & (1 << _COUNT_AT) - 1).to_bytes(FIRST_BYTES, "big")
    return value[FIRST_BYTES - (kept >> _COUNT_AT) :]


def first_byte(kept: Int64s) -> Int64s:
    """Return the first byte of streams; -1 without any."""
    count = kept >> _COUNT_AT
    byte = kept >> 8 * np.maximum(count - 1, 0) & 0xFF
    return np.where(count > 0, byte, -1)


@Kernel
def _keep_first(
    data: U8,
    carry_over: U8,
    connection: I64,
    side: I8,
    place: U8,
    start: I64,
    length: I64,
    connections: Rows[ConnectionRow],
) -> None:
    """
    Append the first bytes of chunks to those of their streams.

    Args:
        data: Bytes of the window.
        carry_over: Bytes of earlier windows.
        connection: The row of the connection of each chunk.
        side: Its side.
        place: Where its bytes are: 1 in the window, 2 in the bytes of earlier ones, 0 nowhere.
        start: Their offset there.
        length: Number of bytes.
        connections: The rows.
    """
    for chunk in range(len(connection)):
        if place[chunk] == 0:
            continue
        stream = connections[connection[chunk]].streams[side[chunk]]
        value = stream.first_bytes
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
        stream.first_bytes = count << _COUNT_AT | value
