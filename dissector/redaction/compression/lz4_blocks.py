"""
Frames of lz4 with blocks of given sizes.

Source: lz4_Frame_format.md.
"""

from __future__ import annotations

import numpy as np

from dissector.protocol.records.lz4_header import FRAME_MAGIC
from dissector.redaction.compression.sequence_arrays import LZ4
from dissector.redaction.compression.sequences import fitted, raw_size, space_for

_HAS_BLOCK_CHECKSUM, _HAS_CONTENT_SIZE, _HAS_CHECKSUM, _HAS_DICTIONARY = 0x10, 0x08, 0x04, 0x01
_UNCOMPRESSED = 1 << 31


def lz4_of_length(raw: bytes, old: bytes) -> bytes | None:
    """Return a frame for bytes with the header and the sizes of another; None without one."""
    if old[:4] != FRAME_MAGIC or len(old) < 7 or old[4] & _HAS_DICTIONARY:
        return None
    at = 7 + (8 if old[4] & _HAS_CONTENT_SIZE else 0)
    out, done = [old[:at]], 0
    while word := int.from_bytes(old[at : at + 4], "little"):
        size = word & (_UNCOMPRESSED - 1)
        block = old[at + 4 : at + 4 + size]
        count = size if word & _UNCOMPRESSED else _raw_size(block)
        if len(block) != size or count < 0:
            return None
        piece = raw[done : done + count]
        new = piece if word & _UNCOMPRESSED else fitted(LZ4, [piece], size)
        if new is None or len(new) != size:
            return None
        out += (old[at : at + 4], new)
        at += 4 + size
        done += count
        if old[4] & _HAS_BLOCK_CHECKSUM:
            out.append(_checksum(new))
            at += 4
    out.append(bytes(4))
    at += 4
    if old[4] & _HAS_CHECKSUM:
        out.append(_checksum(raw))
        at += 4
    return b"".join(out) if done == len(raw) and at == len(old) else None


def _raw_size(block: bytes) -> int:
    return int(raw_size(np.frombuffer(block, np.uint8), space_for(len(block))))


def _checksum(data: bytes) -> bytes:
    """Return XXH32: the library computes it only for the end of a frame."""
    import lz4.frame

    return bytes(lz4.frame.compress(data, content_checksum=True)[-4:])
