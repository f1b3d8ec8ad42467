"""Inputs of a capture that are no files on disk: bytes, and file objects of the caller."""

from __future__ import annotations

import io
import threading
from collections.abc import Mapping
from typing import Any, BinaryIO, Protocol, TypeAlias


class Input(Protocol):
    """
    What a capture reads under a name instead of a file.

    Attributes:
        is_rereadable: Whether it can be opened more than once.
    """

    is_rereadable: bool

    def open(self) -> BinaryIO | io.RawIOBase:
        """Return a file at the first byte; closing it leaves the caller's file open."""


Inputs: TypeAlias = Mapping[str, Input]
"""Inputs by the names in the list of files."""


class PositionedReader(io.RawIOBase):
    """Reads a shared file from a position of its own, so that several readers don't interfere."""

    def __init__(self, file: Any, lock: threading.Lock, position: int = 0) -> None:
        self._file = file
        self._lock = lock
        self._position = position

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read what is there; 0 at the end."""
        with self._lock:
            self._file.seek(self._position)
            data = self._file.read(len(buffer)) or b""
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)


class BytesInput:
    """The content of a capture file, in memory."""

    is_rereadable = True

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

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._lock = threading.Lock()
        seekable = getattr(file, "seekable", None)
        self.is_rereadable = bool(seekable is not None and seekable())
        self._begin = file.tell() if self.is_rereadable else 0

    def open(self) -> BinaryIO | io.RawIOBase:
        """Return a file at the first byte; a file that is not seekable goes on where it is."""
        if self.is_rereadable:
            return PositionedReader(self._file, self._lock, self._begin)
        if isinstance(self._file, io.FileIO):
            return io.FileIO(self._file.fileno(), closefd=False)
        return _Unclosed(self._file)


class _Unclosed(io.RawIOBase):
    """Reads a file object, and leaves it open."""

    def __init__(self, file: BinaryIO) -> None:
        self._read = getattr(file, "read1", file.read)

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read what is there; 0 at the end."""
        data: bytes = self._read(len(buffer)) or b""
        buffer[: len(data)] = data
        return len(data)
