"""Record sync: finds a plausible record boundary in the middle of a pcap file."""

from __future__ import annotations

from typing import BinaryIO

import numpy as np

from dissector.capture.formats.pcap import PcapReader
from dissector.capture.formats.start_search import (
    MAX_PACKET_BYTES,
    NOTHING,
    find_start,
)
from pipeline.split.byte_ranges import UNKNOWN, Range

CHAIN = 6
"""
Number of consecutive headers required to accept the first: more than behind damage, as a wrong
start costs a second reading of the range.
"""


def sync_to_record(file: BinaryIO, header: bytes, byte_range: Range, look_bytes: int) -> int:
    """
    Return the probable first byte of the first record of a range; `UNKNOWN` if none is found.

    Args:
        file: The file; its position changes.
        header: Its file header.
        byte_range: The range.
        look_bytes: Bytes per read, in addition to a chain of the longest records.
    """
    reader = PcapReader(header)
    form = reader.form
    form["longest"] = min(reader.snap_bytes or MAX_PACKET_BYTES, MAX_PACKET_BYTES)
    reach = (CHAIN + 1) * (MAX_PACKET_BYTES + reader.record_bytes)
    at = byte_range.start
    while byte_range.end is None or at < byte_range.end:
        file.seek(at)
        data = _read(file, look_bytes + reach)
        is_at_end = len(data) < look_bytes + reach
        count = len(data) if is_at_end else look_bytes
        if byte_range.end is not None:
            count = min(count, byte_range.end - at)
        found, what = divmod(
            find_start(np.frombuffer(data, np.uint8), 0, form, CHAIN, int(is_at_end)), 4
        )
        if found < count and what != NOTHING:
            return int(at + found)
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
