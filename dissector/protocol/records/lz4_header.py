"""
The header checksum of lz4 frames, and Kafka's old bug in it.

Until 0.10 Kafka computed the checksum over the frame's magic too. Message sets of magic 0 are still
written that way, and readers of magic 0 ignore it.

Source: KAFKA-3160 and KIP-57; lz4_Frame_format.md, "Header Checksum"; xxhash_spec.md, "XXH32".
"""

from __future__ import annotations

FRAME_MAGIC = b"\x04\x22\x4d\x18"
LONGEST_HEADER = 19
"""Bytes of a frame header with content size and dictionary id."""
_HAS_CONTENT_SIZE = 0x08
_HAS_DICTIONARY = 0x01
_WORD = 0xFFFFFFFF
_PRIME_1, _PRIME_2, _PRIME_3 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
_PRIME_4, _PRIME_5 = 0x27D4EB2F, 0x165667B1


def xxh32_short(data: bytes) -> int:
    """Return XXH32 with seed 0 of fewer than 16 bytes: a frame header is never longer."""
    value = (_PRIME_5 + len(data)) & _WORD
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        value = value + int.from_bytes(data[at : at + 4], "little") * _PRIME_3 & _WORD
        value = (value << 17 | value >> 15) * _PRIME_4 & _WORD
    for byte in data[whole:]:
        value = value + byte * _PRIME_5 & _WORD
        value = (value << 11 | value >> 21) * _PRIME_1 & _WORD
    value = (value ^ value >> 15) * _PRIME_2 & _WORD
    value = (value ^ value >> 13) * _PRIME_3 & _WORD
    return value ^ value >> 16


def _checksum_at(frame: bytes | memoryview) -> int | None:
    """Return the index of the header checksum; None without a complete frame header."""
    if len(frame) < 7 or frame[:4] != FRAME_MAGIC:
        return None
    flags = frame[4]
    at = 6 + (8 if flags & _HAS_CONTENT_SIZE else 0) + (4 if flags & _HAS_DICTIONARY else 0)
    return at if at < len(frame) else None


def corrected_header(frame: bytes | memoryview) -> tuple[bytes, int]:
    """
    Return the frame's header with the checksum of the specification, and the header's size.

    Both are empty without a complete frame header.
    """
    at = _checksum_at(frame)
    if at is None:
        return b"", 0
    header = bytes(frame[:at])
    return header + bytes((xxh32_short(header[4:]) >> 8 & 0xFF,)), at + 1


def with_legacy_checksum(frame: bytes) -> bytes:
    """Return a frame without content size with the checksum that Kafka before 0.10 expects."""
    return frame[:6] + bytes((xxh32_short(frame[:6]) >> 8 & 0xFF,)) + frame[7:]
