"""
Compressed captures: gzip, zstd and lz4 frames, recognised by content, read as a stream.

Several members or frames one after another are one file, as the tools that write them promise.
Whatever the input claims, one step gives at most some megabytes.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

_PIECE_BYTES = 1 << 20

_INPUT_BYTES = 4096
"""
Bytes given to a decompressor at a time: where it fails, no more is lost. And zstd can't bound its
output; a block takes at least 4 bytes and gives at most 128 KiB.
"""


class CompressedDataError(Exception):
    """Compressed data ends too early or is wrong; the text says which. Stays in this package."""


class _Member(Protocol):
    """One gzip member, zstd frame or lz4 frame."""

    magic: bytes
    ended: bool
    rest: memoryview

    def pieces(self, data: memoryview) -> Iterator[bytes]:
        """Yield what `data` decompresses to; past the member's end leave the `rest`."""


class _Gzip:
    """Source: RFC 1952."""

    magic = b"\x1f\x8b"

    def __init__(self) -> None:
        self._object = zlib.decompressobj(31)
        self.ended = False
        self.rest = memoryview(b"")

    def pieces(self, data: memoryview) -> Iterator[bytes]:
        for at in range(0, len(data), _INPUT_BYTES):
            given = data[at : at + _INPUT_BYTES]
            left: memoryview | bytes = given
            while left and not self._object.eof:
                try:
                    yield self._object.decompress(left, _PIECE_BYTES)
                except zlib.error as error:
                    raise CompressedDataError(f"gzip data is damaged ({error})") from None
                left = self._object.unconsumed_tail
            if self._object.eof:
                self.ended = True
                self.rest = data[at + len(given) - len(self._object.unused_data) :]
                return


class _Zstd:
    """Source: RFC 8878."""

    magic = b"\x28\xb5\x2f\xfd"

    def __init__(self) -> None:
        import zstandard

        self._object = zstandard.ZstdDecompressor().decompressobj()
        self._error = zstandard.ZstdError
        self.ended = False
        self.rest = memoryview(b"")

    def pieces(self, data: memoryview) -> Iterator[bytes]:
        for at in range(0, len(data), _INPUT_BYTES):
            given = data[at : at + _INPUT_BYTES]
            try:
                yield self._object.decompress(given)
            except self._error as error:
                raise CompressedDataError(f"zstd data is damaged ({error})") from None
            if self._object.eof:
                self.ended = True
                self.rest = data[at + len(given) - len(self._object.unused_data) :]
                return


class _Lz4:
    """Source: lz4_Frame_format.md in the documentation of lz4, https://github.com/lz4/lz4."""

    magic = b"\x04\x22\x4d\x18"

    def __init__(self) -> None:
        import lz4.frame

        self._object: Any = lz4.frame.LZ4FrameDecompressor()
        self.ended = False
        self.rest = memoryview(b"")

    def pieces(self, data: memoryview) -> Iterator[bytes]:
        for at in range(0, len(data), _INPUT_BYTES):
            given = data[at : at + _INPUT_BYTES]
            left: memoryview | bytes = given
            while True:
                try:
                    piece: bytes = self._object.decompress(left, _PIECE_BYTES)
                except (RuntimeError, ValueError) as error:
                    raise CompressedDataError(f"lz4 data is damaged ({error})") from None
                yield piece
                left = b""
                if self._object.eof:
                    self.ended = True
                    unused = self._object.unused_data or b""
                    self.rest = data[at + len(given) - len(unused) :]
                    return
                if self._object.needs_input:
                    break


_FORMATS: dict[str, type[_Gzip] | type[_Zstd] | type[_Lz4]] = {
    "gzip": _Gzip,
    "zstd": _Zstd,
    "lz4": _Lz4,
}


def compression_of(head: bytes) -> str | None:
    """Return `gzip`, `zstd` or `lz4` if a file that starts with `head` is that, else None."""
    for name, member in _FORMATS.items():
        if head.startswith(member.magic):
            return name
    return None


def decompress(compression: str, chunks: Iterable[bytes]) -> Iterator[bytes]:
    """
    Yield the decompressed bytes of a file in pieces.

    Raises:
        Damaged: The data is wrong, or ends inside a member; what came before has been yielded.
    """
    make = _FORMATS[compression]
    member: _Member | None = None
    data = memoryview(b"")
    for chunk in chunks:
        # What is left over is the beginning of a magic number; members share a chunk uncopied.
        data = memoryview(data.tobytes() + chunk)
        while data:
            if member is None:
                head = data[: len(make.magic)].tobytes()
                if len(head) < len(make.magic) and make.magic.startswith(head):
                    break
                if head != make.magic:
                    _refuse_unless_padding(compression, data.tobytes())
                    data = memoryview(b"")
                    break
                member = make()
            yield from member.pieces(data)
            data = member.rest
            if member.ended:
                member = None
    if member is not None or data:
        raise CompressedDataError(f"{compression} data is cut off")


def _refuse_unless_padding(compression: str, data: bytes) -> None:
    """Zeros behind the last member are what tapes and block devices leave."""
    if data.strip(b"\0"):
        raise CompressedDataError(f"bytes after the end of the {compression} data are none")
