"""Compresses bytes to exactly the length of other compressed bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from dissector.protocol.records.compression import decompress
from dissector.redaction.compression.lz4_blocks import lz4_of_length
from dissector.redaction.compression.padded import gzip_of_length, zstd_of_length
from dissector.redaction.compression.snappy_blocks import snappy_of_length

_CODECS: dict[int, Callable[[bytes, bytes], bytes | None]] = {
    1: gzip_of_length,
    2: snappy_of_length,
    3: lz4_of_length,
    4: zstd_of_length,
}

_Case: TypeAlias = tuple[int, int, bytes, bytes]

_KEPT_BYTES = 8 << 20


class SameLength:
    """
    Compresses bytes to lengths, and the same bytes once.

    What is produced comes again, compressed as it was, in the Fetch responses of each group and of
    each replica.
    """

    def __init__(self) -> None:
        self._known: dict[_Case, bytes | None] = {}
        self._known_bytes = 0

    def find(self, codec: int, raw: bytes, old: bytes, magic: int = 2) -> bytes | None:
        """Return what `same_length` does."""
        case = codec, magic, raw, old
        if case in self._known:
            return self._known[case]
        new = same_length(codec, raw, old, magic)
        size = len(raw) + 2 * len(old)
        if self._known_bytes + size > _KEPT_BYTES:
            self._known.clear()
            self._known_bytes = 0
        if size <= _KEPT_BYTES:
            self._known[case] = new
            self._known_bytes += size
        return new


def same_length(codec: int, raw: bytes, old: bytes, magic: int = 2) -> bytes | None:
    """
    Return bytes compressed to the length of other compressed bytes.

    Args:
        codec: Number of the codec.
        raw: The data to compress.
        old: The replaced compressed bytes, of the same decompressed size.
        magic: Of the batch, as for `decompress`.

    Returns:
        None if the result would be longer.
    """
    compress = _CODECS.get(codec)
    if compress is None:
        return None
    try:
        new = compress(raw, old)
    except IndexError:
        return None
    if new is None or len(new) != len(old):
        return None
    found = decompress(codec, new, magic=magic)
    return new if found.problem is None and found.data == raw else None
