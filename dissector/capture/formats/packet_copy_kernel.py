"""Kernels that copy chosen packets into the blocks of a pcapng file."""

from __future__ import annotations

from typing import NamedTuple

from dissector.capture.formats.packet_rows import MAX_RECORD_BYTES
from dissector.capture.formats.pcapng import BLOCK_MIN_BYTES, ENHANCED, PACKET_HEAD_BYTES
from dissector.capture.integers import u32_of
from dissector.kernel import Kernel, device_function
from dissector.kernel.arrays import I64, U8
from dissector.kernel.memcpy import copy_bytes
from dissector.kernel.named_rows import NamedRow

ENHANCED_EXTRA_BYTES = PACKET_HEAD_BYTES + 3 + 4
"""Maximum overhead of such a block without options."""


class CopyState(NamedRow):
    """
    How far `copy_blocks` came.

    Attributes:
        at: Offset of the next block.
        packet: The next packet.
        filled: Number of bytes written.
    """

    at: int
    packet: int
    filled: int


class Keep:
    """What is done with a packet."""

    NO, COPY, WITH_COMMENTS = 0, 1, 2


class PacketTable(NamedTuple):
    """The columns of `Packets`, and what is done with each, a `Keep`."""

    time_ns: I64
    start: I64
    captured: I64
    original: I64
    keep: U8


@device_function
def put_u32(out: U8, at: int, value: int) -> None:
    """Write 32 bits, little-endian."""
    out[at] = value & 0xFF
    out[at + 1] = value >> 8 & 0xFF
    out[at + 2] = value >> 16 & 0xFF
    out[at + 3] = value >> 24 & 0xFF


@Kernel
def write_packets(data: U8, packets: PacketTable, interface: I64, out: U8) -> int:
    """Write packets as enhanced packet blocks of their interfaces in ns; return their bytes."""
    at = 0
    for i in range(len(packets.start)):
        if not packets.keep[i]:
            continue
        captured = packets.captured[i]
        padded = (captured + 3) // 4 * 4
        length = PACKET_HEAD_BYTES + padded + 4
        put_u32(out, at, ENHANCED)
        put_u32(out, at + 4, length)
        put_u32(out, at + 8, interface[i])
        put_u32(out, at + 12, packets.time_ns[i] >> 32)
        put_u32(out, at + 16, packets.time_ns[i])
        put_u32(out, at + 20, captured)
        put_u32(out, at + 24, packets.original[i])
        copy_bytes(out, at + PACKET_HEAD_BYTES, data, packets.start[i], captured)
        for j in range(captured, padded):
            out[at + PACKET_HEAD_BYTES + j] = 0
        put_u32(out, at + length - 4, length)
        at += length
    return at


@Kernel
def copy_blocks(data: U8, big: int, packets: PacketTable, out: U8, state: CopyState) -> None:
    """Copy the enhanced packet blocks of chosen packets, up to another block or new comments."""
    at, packet, filled = state.at, state.packet, state.filled
    while at + BLOCK_MIN_BYTES <= len(data):
        length = u32_of(data, at + 4, big)
        end = at + (length + 3) // 4 * 4
        if length < BLOCK_MIN_BYTES or length > MAX_RECORD_BYTES or end > len(data):
            break
        if u32_of(data, at, big) != ENHANCED:
            break
        if packet < len(packets.start) and packets.start[packet] == at + PACKET_HEAD_BYTES:
            if packets.keep[packet] == Keep.WITH_COMMENTS:
                break
            if packets.keep[packet]:
                copy_bytes(out, filled, data, at, end - at)
                filled += end - at
            packet += 1
        at = end
    state.at, state.packet, state.filled = at, packet, filled
