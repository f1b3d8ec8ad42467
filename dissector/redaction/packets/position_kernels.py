"""The kernel that counts sequence numbers on beyond 32 bits."""

from __future__ import annotations

from dissector.kernel import Kernel
from dissector.kernel.arrays import I64

NO_STREAM = -1

_SEQ_BITS = 32
_SEQ_HALF, _SEQ_MASK = 1 << _SEQ_BITS - 1, (1 << _SEQ_BITS) - 1


@Kernel
def find_offsets(stream: I64, sequence: I64, first: I64, last: I64, offset: I64) -> None:
    """
    Find where segments begin in their streams.

    Args:
        stream: The number of each one's stream; `NO_STREAM` or a row of `first`.
        sequence: Its sequence number.
        first: The sequence number of the first byte of each stream.
        last: The last offset of each stream, which is changed; not negative.
        offset: Receives the offset of each segment.
    """
    for i in range(len(stream)):
        number = stream[i]
        if number == NO_STREAM:
            continue
        away = (sequence[i] - first[number] - last[number]) & _SEQ_MASK
        if away >= _SEQ_HALF:
            away -= _SEQ_MASK + 1
        offset[i] = last[number] + away
        last[number] = max(offset[i], 0)
