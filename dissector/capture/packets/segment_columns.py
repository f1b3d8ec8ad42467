"""The columns of segments while kernels fill them."""

from __future__ import annotations

from typing import NamedTuple

from dissector.kernel.arrays import I32Table, I64Cube, I64Table

# Columns of 64 bits, and of 32 bits.
PACKET, TIME, SEQ, ACK, START, LENGTH, CAPTURED = range(7)
WIDE = 7
NETWORK, SOURCE_PORT, TARGET_PORT, FLAGS = range(4)
NARROW = 4


class SegmentTable(NamedTuple):
    """
    The columns of segments.

    Attributes:
        wide: Columns of 64 bits.
        narrow: Columns of 32 bits.
        addresses: [2, n, 2] of 64 bits: source and destination, high and low.
        deferred: The list of deferred packets.
    """

    wide: I64Table
    narrow: I32Table
    addresses: I64Cube
    deferred: I64Table
