"""Storage for the bytes of a pipe, to read bodies again."""

from __future__ import annotations

import io
import os
import select
import stat
import tempfile
from collections.abc import Callable
from threading import Lock
from typing import Any, BinaryIO

from dissector.capture.formats.inputs import PositionedReader

Poll = Callable[[float], bool]


class PipeSpool(io.RawIOBase):
    """
    A pipe as a file; all bytes read are also written to a temporary file.

    Attributes:
        poll: Waits for bytes, up to a timeout; None if all bytes have been received.
    """

    def __init__(self, pipe: BinaryIO | io.RawIOBase) -> None:
        self._pipe = pipe
        self._file = tempfile.TemporaryFile(prefix="kafkashark-")  # noqa: SIM115  (until close)
        self._size = 0
        self._lock = Lock()
        self.poll = _poll_of(pipe)

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read the available bytes; 0 at the end."""
        read: Callable[[int], bytes | None] = getattr(self._pipe, "read1", self._pipe.read)
        data = read(len(buffer)) or b""
        buffer[: len(data)] = data
        with self._lock:
            self._file.seek(self._size)
            self._file.write(data)
            self._size += len(data)
        return len(data)

    def reopen(self) -> BinaryIO:
        """Return a file with the bytes received so far."""
        end = self._size
        reader = PositionedReader(lambda at, count: self._read_at(at, min(count, end - at)))
        return io.BufferedReader(reader)

    def close(self) -> None:
        """Delete the temporary file."""
        with self._lock:
            self._file.close()
        super().close()

    def _read_at(self, position: int, count: int) -> bytes:
        with self._lock:
            if self._file.closed:
                return b""
            self._file.seek(position)
            return self._file.read(count)


def _poll_of(pipe: Any) -> Poll | None:
    poll: Poll | None = getattr(pipe, "poll", None)
    if poll is not None or not isinstance(pipe, io.FileIO):
        return poll
    if not stat.S_ISFIFO(os.fstat(pipe.fileno()).st_mode):
        return None
    return lambda seconds: bool(select.select([pipe], [], [], seconds)[0])
