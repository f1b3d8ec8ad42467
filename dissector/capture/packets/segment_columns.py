"""The columns of segments while kernels fill them."""

from __future__ import annotations

from typing import NamedTuple

from dissector.kernel.arrays import I32, I64, I64Cube
from dissector.kernel.named_rows import NamedRow, Rows


class DeferredPacket(NamedRow):
    """
    A packet that is left to `Tunnels`.

    Attributes:
        packet: Its number in the window.
        row: The row that is reserved for it.
        at: The offset behind its VLAN tags.
        kind: The ethertype there.
        tags: The tags.
    """

    packet: int
    row: int
    at: int
    kind: int
    tags: int


class SegmentTable(NamedTuple):
    """
    The columns of segments; see `Segments`.

    Attributes:
        addresses: [2, n, 2]: source and destination, high and low.
        deferred: The packets that are left to `Tunnels`.
    """

    packet: I64
    time_ns: I64
    seq: I64
    ack: I64
    start: I64
    length: I64
    captured: I64
    network: I32
    source_port: I32
    target_port: I32
    flags: I32
    addresses: I64Cube
    deferred: Rows[DeferredPacket]
