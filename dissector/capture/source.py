"""The bytes of one capture file, from disk or standard input, decompressed where they need it."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from dissector.capture.columns import Bytes
from dissector.capture.compressed import Damaged, compression_of, decompressed
from dissector.errors import CaptureError, Problem

_CHUNK_BYTES = 1 << 18
_MAGIC_BYTES = 4


class Source:
    """
    One file, read forward only.

    Attributes:
        name: As the user gave it.
        compression: `gzip`, `zstd`, `lz4` or None.
        position: Bytes given so far, decompressed.
        problem: Why the bytes ended before the file's own end; None if they did not.

    Raises:
        CaptureError: The file can't be opened or read; also from `fill`.
    """

    def __init__(self, name: str, stdin: BinaryIO | None = None) -> None:
        self.name = name
        self.position = 0
        self.problem: Problem | None = None
        self._file = self._open(stdin)
        self._owned = name != "-"
        head = self._read_magic()
        self.compression = compression_of(head)
        self._pending = memoryview(head)
        self._pieces: Iterator[bytes] | None = None
        if self.compression is not None:
            self._pieces = decompressed(self.compression, self._chunks(head))
            self._pending = memoryview(b"")

    def close(self) -> None:
        """Close the file; standard input stays open, it is not ours."""
        if self._owned:
            self._file.close()

    def fill(self, target: Bytes) -> int:
        """Fill `target` with the next bytes; return how many, fewer only at the end."""
        view = target.data
        filled = 0
        while filled < len(view):
            if not self._pending and not self._next_piece():
                filled += self._read_plain(view[filled:])
                break
            taken = self._pending[: len(view) - filled]
            view[filled : filled + len(taken)] = taken
            self._pending = self._pending[len(taken) :]
            filled += len(taken)
        self.position += filled
        return filled

    def _open(self, stdin: BinaryIO | None) -> BinaryIO | io.FileIO:
        if self.name == "-":
            return stdin if stdin is not None else sys.stdin.buffer
        try:
            return Path(self.name).open("rb", buffering=0)
        except OSError as error:
            raise self._unreadable(error) from None
        except ValueError:
            raise CaptureError(self.name, "no such file") from None

    def _unreadable(self, error: OSError) -> CaptureError:
        if isinstance(error, IsADirectoryError):
            return CaptureError(self.name, "is a directory")
        if isinstance(error, FileNotFoundError):
            return CaptureError(self.name, "no such file")
        if isinstance(error, PermissionError):
            return CaptureError(self.name, "permission denied")
        return CaptureError(self.name, (error.strerror or str(error)).lower())

    def _read(self, size: int) -> bytes:
        try:
            return self._file.read(size) or b""
        except OSError as error:
            raise self._unreadable(error) from None

    def _read_magic(self) -> bytes:
        head = b""
        while len(head) < _MAGIC_BYTES:
            more = self._read(_MAGIC_BYTES - len(head))
            if not more:
                break
            head += more
        return head

    def _chunks(self, head: bytes) -> Iterator[bytes]:
        yield head
        while chunk := self._read(_CHUNK_BYTES):
            yield chunk

    def _next_piece(self) -> bool:
        """Take the next decompressed bytes; False where there are none."""
        if self._pieces is None:
            return False
        try:
            for piece in self._pieces:
                if piece:
                    self._pending = memoryview(piece)
                    return True
        except Damaged as damage:
            self.problem = Problem(str(damage))
        return False

    def _read_plain(self, view: memoryview) -> int:
        """Read a file that is not compressed straight to where its bytes are wanted."""
        if self.compression is not None:
            return 0
        filled = 0
        while filled < len(view):
            if isinstance(self._file, io.FileIO):
                count = self._read_into(self._file, view[filled:])
            else:
                piece = self._read(len(view) - filled)
                count = len(piece)
                view[filled : filled + count] = piece
            if not count:
                break
            filled += count
        return filled

    def _read_into(self, file: io.FileIO, view: memoryview) -> int:
        try:
            return file.readinto(view) or 0
        except OSError as error:
            raise self._unreadable(error) from None
