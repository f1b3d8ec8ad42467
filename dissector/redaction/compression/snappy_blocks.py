"""
Snappy, plain or in xerial's framing, with blocks of given sizes.

Source: snappy's format_description.txt; snappy-java, SnappyOutputStream.
"""

from __future__ import annotations

from dissector.protocol.records.unpack import XERIAL_MAGIC
from dissector.redaction.compression.sequence_arrays import SNAPPY
from dissector.redaction.compression.sequences import fitted

_HEADER_BYTES = 16
_PIECE_BYTES = 1 << 16


def snappy_of_length(raw: bytes, old: bytes) -> bytes | None:
    """Return snappy for bytes with the framing and the sizes of another; None without any."""
    if old[:8] != XERIAL_MAGIC:
        return _block_of_size(raw, len(old))
    out, at, done = [old[:_HEADER_BYTES]], _HEADER_BYTES, 0
    while at < len(old):
        size = int.from_bytes(old[at : at + 4], "big")
        if at + 4 + size > len(old):
            return None
        count, _ = _preamble(old, at + 4)
        new = _block_of_size(raw[done : done + count], size)
        if new is None:
            return None
        out += (old[at : at + 4], new)
        at += 4 + size
        done += count
    return b"".join(out) if done == len(raw) else None


def _preamble(data: bytes, at: int) -> tuple[int, int]:
    """Read the uncompressed size of a block; return it and its end."""
    size = shift = 0
    while True:
        byte = data[at]
        at += 1
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return size, at


def _block_of_size(raw: bytes, size: int) -> bytes | None:
    head = _varint(len(raw))
    if not raw:
        return head if len(head) == size else None
    pieces = [raw[at : at + _PIECE_BYTES] for at in range(0, len(raw), _PIECE_BYTES)]
    blocks = fitted(SNAPPY, pieces, size - len(head))
    return None if blocks is None else head + blocks


def _varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*out, number))
