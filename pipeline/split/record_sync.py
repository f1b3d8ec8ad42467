"""Where a record begins in the middle of a pcap file, as far as that can be believed."""

from __future__ import annotations

import struct
from typing import Any, BinaryIO

import numpy as np

from dissector.capture.formats.pcap import PcapReader
from dissector.capture.integers import u32_of
from dissector.kernel import Kernel
from pipeline.split.byte_ranges import UNKNOWN, Range

CHAIN = 6
"""How many headers must follow one another for the first to be believed."""

MAX_PACKET_BYTES = 1 << 18
"""No packet of a chain is longer; what is longer is found by reading on."""

MAX_APART_S = 1 << 17
"""How far the times of neighbours may be apart: a day and a half."""

_NANOSECOND_MAGICS = (b"\x4d\x3c\xb2\xa1", b"\xa1\xb2\x3c\x4d")


def sync_to_record(file: BinaryIO, header: bytes, each: Range, look_bytes: int) -> int:
    """
    Return the byte at which the first record of a range may begin; `UNKNOWN` where none may.

    Args:
        file: The file; it is read from another place then.
        header: Its header.
        each: The range.
        look_bytes: How much is read at a time, beyond a chain of the longest records.
    """
    big = int(header[:1] == b"\xa1")
    units = 1_000_000_000 if header[:4] in _NANOSECOND_MAGICS else 1_000_000
    snaplen = struct.unpack_from(">I" if big else "<I", header, 16)[0]
    longest = min(snaplen, MAX_PACKET_BYTES) if snaplen else MAX_PACKET_BYTES
    record_bytes = PcapReader(header).needed_bytes
    reach = (CHAIN + 1) * (MAX_PACKET_BYTES + record_bytes)
    at = each.start
    while each.end is None or at < each.end:
        file.seek(at)
        data = _read(file, look_bytes + reach)
        last = len(data) < look_bytes + reach
        count = len(data) if last else look_bytes
        if each.end is not None:
            count = min(count, each.end - at)
        found: int = find_record_chain(
            np.frombuffer(data, np.uint8),
            big,
            record_bytes,
            units,
            longest,
            count,
            int(last),
            work=count,
        )
        if found < count:
            return at + found
        if last:
            return UNKNOWN
        at += count
    return UNKNOWN


def _read(file: BinaryIO, size: int) -> bytes:
    pieces = []
    while size > 0 and (piece := file.read(size)):
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


@Kernel
def find_record_chain(
    data: Any, big: int, record_bytes: int, units: int, longest: int, count: int, last: int
) -> int:
    """
    Return where the first chain of headers begins before `count`; `count` where none does.

    Args:
        data: Bytes of the file.
        big: Whether the highest byte of a number comes first.
        record_bytes: Of each record's header.
        units: In a second.
        longest: The longest packet.
        count: Before which byte it is to begin.
        last: Whether the file ends with `data`; a chain that ends there is believed.
    """
    for begin in range(count):
        at = begin
        links = 0
        seconds = 0
        while links < CHAIN and at + record_bytes <= len(data):
            captured = u32_of(data, at + 8, big)
            original = u32_of(data, at + 12, big)
            now = u32_of(data, at, big)
            apart = now - seconds if now > seconds else seconds - now
            if (
                captured == 0
                or captured > longest
                or captured > original
                or original > MAX_PACKET_BYTES
                or u32_of(data, at + 4, big) >= units
                or (links > 0 and apart > MAX_APART_S)
            ):
                break
            seconds = now
            links += 1
            at += record_bytes + captured
        if links == CHAIN or (last != 0 and links > 0 and at == len(data)):
            return begin
    return count
