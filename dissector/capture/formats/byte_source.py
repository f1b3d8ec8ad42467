"""The bytes of one capture file, from disk or standard input, decompressed where they need it."""

from __future__ import annotations

import io
import os
import select
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from dissector.capture.columns import Bytes
from dissector.capture.formats.compressed import CompressedDataError, compression_of, decompress
from dissector.errors import CaptureError, Problem

_CHUNK_BYTES = 1 << 18
_MAGIC_BYTES = 4
_PATIENCE_S = 0.2
"""How long what a pipe has given may wait for more."""

_GRACE_S = 1.0
"""How long a pipe is read on when the reading is to end: who writes it may be ending too."""


class StopSignal:
    """Asks for the end of a reading: captures then end where they are."""

    def __init__(self) -> None:
        self._asked_s: float | None = None

    @property
    def is_requested(self) -> bool:
        """Whether the reading is to end."""
        return self._asked_s is not None

    @property
    def is_overdue(self) -> bool:
        """Whether a pipe that still gives bytes is to be left."""
        return self._asked_s is not None and time.monotonic() > self._asked_s + _GRACE_S

    def request(self) -> None:
        """Ask for the end; several times is once."""
        if self._asked_s is None:
            self._asked_s = time.monotonic()


class ByteSource:
    """
    One file, read forward only.

    Attributes:
        name: As the user gave it.
        compression: `gzip`, `zstd`, `lz4` or None.
        position: Bytes given so far, decompressed.
        ended: Whether the last byte has been given.
        problem: Why the bytes ended before the file's own end; None if they did not.
        is_live: Whether this is a pipe, whose bytes come when they come.
        file_bytes: Bytes read of the file itself so far, compressed or not.
        stopped: Whether it was left before its end, as that was asked for.

    Raises:
        CaptureError: The file can't be opened or read; also from `fill`.
    """

    def __init__(
        self, name: str, stdin: BinaryIO | None = None, stop: StopSignal | None = None
    ) -> None:
        self.name = name
        self.file_bytes = 0
        self.stopped = False
        self._stop = stop or StopSignal()
        self._due_s = 0.0
        self.position = 0
        self.ended = False
        self.problem: Problem | None = None
        self._file = self._open(stdin)
        self._owned = name != "-"
        self.is_live = _is_live(self._file)
        head = self._read_magic()
        self.compression = compression_of(head)
        self._pending = memoryview(head)
        self._pieces: Iterator[bytes] | None = None
        if self.compression is not None:
            self._pieces = decompress(self.compression, self._chunks(head))
            self._pending = memoryview(b"")

    def close(self) -> None:
        """Close the file; standard input stays open, it is not ours."""
        if self._owned:
            self._file.close()

    def fill(self, target: Bytes, *, has_data: bool = False) -> int:
        """
        Fill `target` with the next bytes.

        Args:
            target: Where they go.
            has_data: Whether bytes are there from an earlier call that shall not wait long for
                more.

        Returns:
            How many; fewer than fit at the end, and where a pipe has given some and pauses, or
            gives little for long, so that a live capture shows what it has.
        """
        view = target.data
        filled = 0
        while filled < len(view) and not self.ended:
            if (filled or has_data) and self._pauses():
                break
            count = self._read_into(view[filled:])
            self.ended = count == 0
            if not (filled or has_data):
                self._due_s = time.monotonic() + _PATIENCE_S
            filled += count
        self.position += filled
        return filled

    def _pauses(self) -> bool:
        if not self.is_live or self._pending:
            return False
        left_s = self._due_s - time.monotonic()
        return left_s <= 0 or not select.select([self._file], [], [], left_s)[0]

    def _is_over(self) -> bool:
        """Return whether the file is to be left here; of a pipe, wait for bytes before."""
        if self.is_live:
            while not select.select([self._file], [], [], _PATIENCE_S)[0]:
                if self._stop.is_requested:
                    self.stopped = True
                    return True
        self.stopped = self._stop.is_overdue if self.is_live else self._stop.is_requested
        return self.stopped

    def _open(self, stdin: BinaryIO | None) -> BinaryIO | io.FileIO:
        if self.name == "-":
            return stdin if stdin is not None else _standard_input()
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
        if self._is_over():
            return b""
        try:
            data = self._file.read(size) or b""
        except OSError as error:
            raise self._unreadable(error) from None
        self.file_bytes += len(data)
        return data

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
        except CompressedDataError as damage:
            self.problem = Problem(str(damage))
        return False

    def _read_into(self, view: memoryview) -> int:
        """Read some bytes, at least one; 0 at the end."""
        if not self._pending and not self._next_piece():
            if self.compression is not None:
                return 0
            if isinstance(self._file, io.RawIOBase):
                return self._read_straight(self._file, view)
            self._pending = memoryview(self._read(min(len(view), _CHUNK_BYTES)))
        taken = self._pending[: len(view)]
        view[: len(taken)] = taken
        self._pending = self._pending[len(taken) :]
        return len(taken)

    def _read_straight(self, file: io.RawIOBase, view: memoryview) -> int:
        if self._is_over():
            return 0
        try:
            count = file.readinto(view) or 0
        except OSError as error:
            raise self._unreadable(error) from None
        self.file_bytes += count
        return count


def _standard_input() -> BinaryIO | io.FileIO:
    """Return standard input without a buffer, which would hide whether more has come."""
    try:
        return io.FileIO(sys.stdin.fileno(), closefd=False)
    except (OSError, ValueError):
        return sys.stdin.buffer


def _is_live(file: BinaryIO | io.FileIO) -> bool:
    """Return whether a file is a pipe, whose bytes come when they come (and can be asked)."""
    if sys.platform == "win32" or not isinstance(file, io.FileIO):
        return False
    return stat.S_ISFIFO(os.fstat(file.fileno()).st_mode)
