"""
Snappy, plain or in xerial's framing, with blocks of given sizes.

Source: snappy's format_description.txt; snappy-java, SnappyOutputStream.
"""

from __future__ import annotations

from dissector.protocol.records.unpack import XERIAL_MAGIC
from dissector.redaction.compression.sequences import Sequence, find_sequences, grown

_HEADER_BYTES = 16
_LONGEST_COPY = 64
_NEAR = 2048
_MOST_LENGTH_BYTES = 4


def snappy_of_length(raw: bytes, old: bytes) -> bytes | None:
    """Return snappy for bytes with the framing and the sizes of another; None without any."""
    if old[:8] != XERIAL_MAGIC:
        return _block_of_size(raw, len(old))
    out, at, done = [old[:_HEADER_BYTES]], _HEADER_BYTES, 0
    while at < len(old):
        size = int.from_bytes(old[at : at + 4], "big")
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
    pieces = [raw[at : at + 65536] for at in range(0, len(raw), 65536)]
    found = [find_sequences(piece) for piece in pieces]
    missing = size - len(head) - sum(_cost(each) for piece in found for each in piece)
    if missing < 0 or not raw:
        return head if len(head) == size else None
    out = [head]
    for piece, sequences in zip(pieces, found, strict=True):
        sequences, missing = grown(sequences, _cost, missing)
        encoded, missing = _encode(piece, sequences, missing)
        out.append(encoded)
    return None if missing else b"".join(out)


def _cost(sequence: Sequence) -> int:
    literals = sequence.literals
    cost = literals + 1 + _length_bytes(literals) if literals else 0
    return cost + sum(_copy_cost(count, sequence.offset) for count in _copies(sequence.match))


def _length_bytes(literals: int) -> int:
    """Return the number of bytes of a literal's length after the tag."""
    return 0 if literals <= 60 else 1 if literals <= 256 else 2 if literals <= 65536 else 3


def _copies(match: int) -> list[int]:
    """Return the lengths of the copies of a match, each at least 4."""
    found = []
    while match > _LONGEST_COPY + 3:
        found.append(_LONGEST_COPY)
        match -= _LONGEST_COPY
    if match > _LONGEST_COPY:
        found.append(_LONGEST_COPY - 4)
        match -= _LONGEST_COPY - 4
    return [*found, match] if match else found


def _copy_cost(count: int, offset: int) -> int:
    return 2 if 4 <= count <= 11 and offset < _NEAR else 3


def _encode(raw: bytes, sequences: list[Sequence], missing: int) -> tuple[bytes, int]:
    """Return the block, and the number of missing bytes: lengths may be longer than necessary."""
    out, at = bytearray(), 0
    for literals, match, offset in sequences:
        if literals:
            needed = _length_bytes(literals)
            count = min(needed + missing, _MOST_LENGTH_BYTES)
            missing -= count - needed
            tag = literals - 1 if not count else 59 + count
            out.append(tag << 2)
            out += (literals - 1).to_bytes(count, "little") if count else b""
            out += raw[at : at + literals]
        for length in _copies(match):
            out += _copy(length, offset)
        at += literals + match
    return bytes(out), missing


def _copy(length: int, offset: int) -> bytes:
    if _copy_cost(length, offset) == 2:
        return bytes(((offset >> 8) << 5 | (length - 4) << 2 | 1, offset & 0xFF))
    return bytes(((length - 1) << 2 | 2,)) + offset.to_bytes(2, "little")


def _varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*out, number))
