"""Inputs of a capture other than files on disk: bytes, and file objects of the caller."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO, Protocol, TypeAlias


class Input(Protocol):
    """
    A stream to read under a name in place of a file.

    Attributes:
        is_rereadable: Whether it can be opened more than once.
        is_appended: Whether its packets follow those of the files before it, whatever their times.
    """

    is_rereadable: bool
    is_appended: bool = False

    def open(self) -> BinaryIO | io.RawIOBase:
        """Return a file at the first byte; closing it leaves the caller's file open."""


Inputs: TypeAlias = Mapping[str, Input]
"""Inputs by the names in the list of files."""

ReadAt: TypeAlias = Callable[[int, int], bytes]
"""Returns up to a number of bytes at a position; empty at the end."""


class PositionedReader(io.RawIOBase):
    """
    A file with an independent position over bytes that several readers share.

    Attributes:
        position: Number of bytes read so far, or where reading began.
    """

    def __init__(self, read_at: ReadAt, position: int = 0) -> None:
        self._read_at = read_at
        self.position = position

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read the available bytes; 0 at the end."""
        try:
            data = self._read_at(self.position, len(buffer)) or b""
        except ValueError as error:  # the caller has closed the file
            raise OSError(None, str(error)) from None
        buffer[: len(data)] = data
        self.position += len(data)
        return len(data)


class BytesInput:
    """The content of a capture file, in memory."""

    is_rereadable = True
    is_appended = False

    def __init__(self, data: bytes | bytearray | memoryview) -> None:
        self._data = bytes(data)

    def open(self) -> BinaryIO:
        """Return a file at the first byte."""
        return io.BytesIO(self._data)


class FileInput:
    """
    A file object of the caller, read from its present position.

    Attributes:
        is_rereadable: Whether it is seekable; others can be read once only.
    """

    is_appended = False

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._lock = threading.Lock()
        seekable = getattr(file, "seekable", None)
        self.is_rereadable = bool(seekable is not None and seekable())
        self._begin = file.tell() if self.is_rereadable else 0

    def open(self) -> BinaryIO | io.RawIOBase:
        """Return a file at the first byte; one that can't seek continues at its position."""
        if self.is_rereadable:
            return PositionedReader(self._read_at, self._begin)
        if isinstance(self._file, io.FileIO):  # a pipe, which can be polled
            return io.FileIO(self._file.fileno(), closefd=False)
        read = getattr(self._file, "read1", self._file.read)
        return PositionedReader(lambda position, count: read(count))

    def _read_at(self, position: int, count: int) -> bytes:
        with self._lock:
            self._file.seek(position)
            return self._file.read(count)
