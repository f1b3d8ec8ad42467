"""
Frames of lz4 with blocks of given sizes.

Source: lz4_Frame_format.md, lz4_Block_format.md.
"""

from __future__ import annotations

from dissector.protocol.records.lz4_header import FRAME_MAGIC
from dissector.redaction.compression.sequences import (
    MIN_MATCH,
    Sequence,
    find_sequences,
    grown,
    sequences_of,
)

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
        piece = raw[done : done + count]
        new = piece if word & _UNCOMPRESSED else _block_of_size(piece, size)
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
    return sum(each.literals + each.match for each in sequences_of(block))


def _checksum(data: bytes) -> bytes:
    """Return XXH32: the library computes it only for the end of a frame."""
    import lz4.frame

    return bytes(lz4.frame.compress(data, content_checksum=True)[-4:])


def _block_of_size(raw: bytes, size: int) -> bytes | None:
    sequences = find_sequences(raw)
    missing = size - sum(map(_cost, sequences))
    if missing < 0:
        return None
    sequences, missing = grown(sequences, _cost, missing)
    return None if missing else _encode(raw, sequences)


def _cost(sequence: Sequence) -> int:
    cost = 1 + _extra(sequence.literals) + sequence.literals
    return cost + 2 + _extra(sequence.match - MIN_MATCH) if sequence.match else cost


def _extra(length: int) -> int:
    """Return the number of bytes after the half byte of a length."""
    return 0 if length < 15 else 1 + (length - 15) // 255


def _encode(raw: bytes, sequences: list[Sequence]) -> bytes:
    out, at = bytearray(), 0
    for literals, match, offset in sequences:
        matched = match - MIN_MATCH if match else 0
        out.append(min(literals, 15) << 4 | min(matched, 15))
        out += _length_bytes(literals) + raw[at : at + literals]
        if match:
            out += offset.to_bytes(2, "little") + _length_bytes(matched)
        at += literals + match
    return bytes(out)


def _length_bytes(length: int) -> bytes:
    if length < 15:
        return b""
    full, rest = divmod(length - 15, 255)
    return b"\xff" * full + bytes((rest,))
