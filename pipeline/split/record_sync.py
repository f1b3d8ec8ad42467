"""Record sync: finds a plausible record boundary in the middle of a pcap file."""

from __future__ import annotations

import struct
from typing import BinaryIO

import numpy as np

from dissector.capture.formats.pcap import PcapReader
from dissector.capture.integers import u32_of
from dissector.kernel import Kernel
from dissector.kernel.arrays import U8
from pipeline.split.byte_ranges import UNKNOWN, Range

CHAIN = 6
"""Number of consecutive headers required to accept the first."""

MAX_PACKET_BYTES = 1 << 18
"""No packet of a chain is longer; a longer packet is found when reading on."""

MAX_APART_S = 1 << 17
"""Maximum distance between the times of neighbouring records: a day and a half."""

_NANOSECOND_MAGICS = (b"\x4d\x3c\xb2\xa1", b"\xa1\xb2\x3c\x4d")


def sync_to_record(file: BinaryIO, header: bytes, byte_range: Range, look_bytes: int) -> int:
    """
    Return the probable first byte of the first record of a range; `UNKNOWN` if none is found.

    Args:
        file: The file; its position changes.
        header: Its file header.
        byte_range: The range.
        look_bytes: Bytes per read, in addition to a chain of the longest records.
    """
    big = int(header[:1] == b"\xa1")
    units_per_s = 1_000_000_000 if header[:4] in _NANOSECOND_MAGICS else 1_000_000
    snaplen = struct.unpack_from(">I" if big else "<I", header, 16)[0]
    longest = min(snaplen, MAX_PACKET_BYTES) if snaplen else MAX_PACKET_BYTES
    record_bytes = PcapReader(header).needed_bytes
    reach = (CHAIN + 1) * (MAX_PACKET_BYTES + record_bytes)
    at = byte_range.start
    while byte_range.end is None or at < byte_range.end:
        file.seek(at)
        data = _read(file, look_bytes + reach)
        is_at_end = len(data) < look_bytes + reach
        count = len(data) if is_at_end else look_bytes
        if byte_range.end is not None:
            count = min(count, byte_range.end - at)
        found: int = find_record_chain(
            np.frombuffer(data, np.uint8),
            big,
            record_bytes,
            units_per_s,
            longest,
            count,
            int(is_at_end),
        )
        if found < count:
            return at + found
        if is_at_end:
            return UNKNOWN
        at += count
    return UNKNOWN


def _read(file: BinaryIO, size: int) -> bytes:
    blocks = []
    while size > 0 and (block := file.read(size)):
        blocks.append(block)
        size -= len(block)
    return b"".join(blocks)


@Kernel
def find_record_chain(
    data: U8,
    big: int,
    record_bytes: int,
    units_per_s: int,
    longest: int,
    count: int,
    is_at_end: int,
) -> int:
    """
    Return the begin of the first chain of headers before `count`; `count` without one.

    Args:
        data: Bytes of the file.
        big: Whether integers are big-endian.
        record_bytes: Size of a record header.
        units_per_s: Units of the fraction of a second per second.
        longest: The longest packet.
        count: The chain must begin before this offset.
        is_at_end: Whether the file ends with `data`; a shorter chain that ends there is accepted.
    """
    for begin in range(count):
        at = begin
        headers = 0
        seconds = 0
        while headers < CHAIN and at + record_bytes <= len(data):
            captured = u32_of(data, at + 8, big)
            original = u32_of(data, at + 12, big)
            now = u32_of(data, at, big)
            apart = now - seconds if now > seconds else seconds - now
            if (
                captured == 0
                or captured > longest
                or captured > original
                or original > MAX_PACKET_BYTES
                or u32_of(data, at + 4, big) >= units_per_s
                or (headers > 0 and apart > MAX_APART_S)
            ):
                break
            seconds = now
            headers += 1
            at += record_bytes + captured
        if headers == CHAIN or (is_at_end != 0 and headers > 0 and at == len(data)):
            return begin
    return count
