"""
Compressed captures: gzip, zstd and lz4 frames, recognised by content, read as a stream.

Concatenated members or frames are one file, as with the tools that write them. Whatever the input
claims, one step yields at most some megabytes.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

_OUTPUT_BYTES = 1 << 20

_INPUT_BYTES = 4096
"""
Bytes given to a decompressor at a time: on failure no more than these are lost. Besides, zstd can't
bound its output; a block takes at least 4 bytes and yields at most 128 KiB.
"""


class CompressedDataError(Exception):
    """Compressed data is invalid or ends too early. Never leaves this package."""


class _Member(Protocol):
    """One gzip member, zstd frame or lz4 frame."""

    magic: bytes
    ended: bool
    leftover: memoryview

    def decompress(self, data: memoryview) -> Iterator[bytes]:
        """Yield the decompressed data; set `leftover` to the data after the member's end."""


class _Gzip:
    """Source: RFC 1952."""

    magic = b"\x1f\x8b"

    def __init__(self) -> None:
        self._object = zlib.decompressobj(31)
        self.ended = False
        self.leftover = memoryview(b"")

    def decompress(self, data: memoryview) -> Iterator[bytes]:
        for at in range(0, len(data), _INPUT_BYTES):
            block = data[at : at + _INPUT_BYTES]
            left: memoryview | bytes = block
            while left and not self._object.eof:
                try:
                    yield self._object.decompress(left, _OUTPUT_BYTES)
                except zlib.error as error:
                    raise CompressedDataError(f"gzip data is damaged ({error})") from None
                left = self._object.unconsumed_tail
            if self._object.eof:
                self.ended = True
                self.leftover = data[at + len(block) - len(self._object.unused_data) :]
                return


class _Zstd:
    """Source: RFC 8878."""

    magic = b"\x28\xb5\x2f\xfd"

    def __init__(self) -> None:
        import zstandard

        self._object = zstandard.ZstdDecompressor().decompressobj()
        self._error = zstandard.ZstdError
        self.ended = False
        self.leftover = memoryview(b"")

    def decompress(self, data: memoryview) -> Iterator[bytes]:
        for at in range(0, len(data), _INPUT_BYTES):
            block = data[at : at + _INPUT_BYTES]
            try:
                yield self._object.decompress(block)
            except self._error as error:
                raise CompressedDataError(f"zstd data is damaged ({error})") from None
            if self._object.eof:
                self.ended = True
                self.leftover = data[at + len(block) - len(self._object.unused_data) :]
                return


class _Lz4:
    """Source: lz4_Frame_format.md in the documentation of lz4, https://github.com/lz4/lz4."""

    magic = b"\x04\x22\x4d\x18"

    def __init__(self) -> None:
        import lz4.frame

        self._object: Any = lz4.frame.LZ4FrameDecompressor()
        self.ended = False
        self.leftover = memoryview(b"")

    def decompress(self, data: memoryview) -> Iterator[bytes]:
        for at in range(0, len(data), _INPUT_BYTES):
            block = data[at : at + _INPUT_BYTES]
            left: memoryview | bytes = block
            while True:
                try:
                    output: bytes = self._object.decompress(left, _OUTPUT_BYTES)
                except (RuntimeError, ValueError) as error:
                    raise CompressedDataError(f"lz4 data is damaged ({error})") from None
                yield output
                left = b""
                if self._object.eof:
                    self.ended = True
                    unused = self._object.unused_data or b""
                    self.leftover = data[at + len(block) - len(unused) :]
                    return
                if self._object.needs_input:
                    break


_FORMATS: dict[str, type[_Gzip] | type[_Zstd] | type[_Lz4]] = {
    "gzip": _Gzip,
    "zstd": _Zstd,
    "lz4": _Lz4,
}


def compression_of(head: bytes) -> str | None:
    """Return the compression of a file that starts with `head`: `gzip`, `zstd`, `lz4` or None."""
    for name, member in _FORMATS.items():
        if head.startswith(member.magic):
            return name
    return None


def decompress(compression: str, chunks: Iterable[bytes]) -> Iterator[bytes]:
    """
    Yield the decompressed bytes of a file.

    Raises:
        CompressedDataError: The data is invalid, or ends inside a member; the bytes before that
            have been yielded.
    """
    member_type = _FORMATS[compression]
    member: _Member | None = None
    data = memoryview(b"")
    for chunk in chunks:
        # `data` is the beginning of a magic number here; members share a chunk uncopied.
        data = memoryview(data.tobytes() + chunk)
        while data:
            if member is None:
                head = data[: len(member_type.magic)].tobytes()
                if len(head) < len(member_type.magic) and member_type.magic.startswith(head):
                    break
                if head != member_type.magic:
                    _check_padding(compression, data.tobytes())
                    data = memoryview(b"")
                    break
                member = member_type()
            yield from member.decompress(data)
            data = member.leftover
            if member.ended:
                member = None
    if member is not None or data:
        raise CompressedDataError(f"{compression} data is cut off")


def _check_padding(compression: str, data: bytes) -> None:
    """Raise CompressedDataError unless the data is zeros, as tapes and block devices pad."""
    if data.strip(b"\0"):
        raise CompressedDataError(
            f"bytes after the end of the {compression} data are not {compression} data"
        )
