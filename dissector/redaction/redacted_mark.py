"""
The mark of redacted captures: a comment of each section.

A redacted token looks like any other, so nothing else shows that no secret is left in it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from dissector.capture.formats import pcapng
from dissector.capture.formats.block_comments import COMMENT, SECTION_HEAD_BYTES, options_of
from dissector.capture.formats.capture_reader import read_file_head, read_packets

REDACTED = "redacted: kafkashark export --redact"


def is_redacted(path: str) -> bool:
    """Return whether each section of a capture has the mark."""
    if not read_file_head(path).startswith(pcapng.MAGIC):
        return False
    parts = (
        packets.data[begin:end].tobytes()
        for packets in read_packets([path])
        for begin, end, _ in packets.spans
    )
    marks = [_is_marked(data, at) for data in parts for at in _sections(data)]
    return bool(marks) and all(marks)


def _sections(data: bytes) -> Iterator[int]:
    """Yield where sections begin; bytes of a packet may look like one, and have no mark."""
    at = data.find(pcapng.MAGIC)
    while at >= 0:
        if data[at + 8 : at + 12] in pcapng.BYTE_ORDERS:
            yield at
        at = data.find(pcapng.MAGIC, at + 1)


def _is_marked(data: bytes, at: int) -> bool:
    order = pcapng.BYTE_ORDERS[data[at + 8 : at + 12]]
    (length,) = struct.unpack_from(f"{order}I", data, at + 4)
    options = data[at + SECTION_HEAD_BYTES : at + length - 4]
    return (COMMENT, REDACTED.encode()) in options_of(order, options)
