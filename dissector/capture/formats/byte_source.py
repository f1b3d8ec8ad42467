"""The bytes of one capture file, from disk or standard input, decompressed if necessary."""

from __future__ import annotations

import io
import os
import select
import stat
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, TypeAlias

from dissector.capture.columns import Bytes
from dissector.capture.formats.compressed import CompressedDataError, compression_of, decompress
from dissector.capture.formats.inputs import Inputs
from dissector.errors import CaptureError, Problem

_CHUNK_BYTES = 1 << 18
_MAGIC_BYTES = 4
_PIPE_WAIT_S = 0.2
"""Time that data from a pipe may wait for more."""

_IDLE_S = 1.0
"""Timeout of one wait for a pipe; between waits the display may be refreshed."""

_GRACE_S = 1.0
"""Time for which a pipe is read after a stop request, as its writer may be ending too."""


Poll: TypeAlias = Callable[[float], bool]
"""Waits for bytes up to a timeout in seconds; returns whether there are bytes, or the end."""


class StopSignal:
    """A request to stop reading: captures then end at the current position."""

    def __init__(self, end_writer: Callable[[], None] | None = None) -> None:
        """Start; `end_writer` ends the writer of a pipe, which is then read to its end."""
        self._requested_s: float | None = None
        self._end_writer = end_writer

    @property
    def is_requested(self) -> bool:
        """Whether reading is to stop."""
        return self._requested_s is not None

    @property
    def ends_writer(self) -> bool:
        """Whether the writer of the pipe is ended, too: the capture is our own."""
        return self._end_writer is not None

    @property
    def is_overdue(self) -> bool:
        """Whether the grace period of a pipe that still delivers data is over."""
        return self._requested_s is not None and time.monotonic() > self._requested_s + _GRACE_S

    def request(self) -> None:
        """Request the stop; further calls have no effect."""
        if self._requested_s is None:
            self._requested_s = time.monotonic()
            if self._end_writer is not None:
                self._end_writer()


class ByteSource:
    """
    One file, read forward only.

    Attributes:
        name: As the user gave it.
        compression: `gzip`, `zstd`, `lz4` or None.
        position: Number of decompressed bytes delivered so far.
        ended: Whether the last byte has been delivered.
        problem: Reason for an end before that of the file; None without one.
        is_live: Whether this is a pipe, which delivers bytes at any time.
        file_bytes: Bytes read so far of the file itself, compressed or not.
        stopped: Whether reading was stopped before the end, on request.

    Raises:
        CaptureError: The file can't be opened or read; also from `fill`.
    """

    def __init__(
        self,
        name: str,
        stdin: BinaryIO | None = None,
        stop: StopSignal | None = None,
        inputs: Inputs | None = None,
    ) -> None:
        self.name = name
        self._inputs = inputs or {}
        self.file_bytes = 0
        self.stopped = False
        self._stop = stop or StopSignal()
        self._deadline_s = 0.0
        self.position = 0
        self.ended = False
        self.problem: Problem | None = None
        self._file = self._open(stdin)
        self._owns_file = name != "-" or name in self._inputs
        self._poll = _poll_of(self._file)
        self.is_live = self._poll is not None
        head = self._read_magic()
        self.compression = compression_of(head)
        self._pending = memoryview(head)
        self._decompressed: Iterator[bytes] | None = None
        if self.compression is not None:
            self._decompressed = decompress(self.compression, self._chunks(head))
            self._pending = memoryview(b"")

    def close(self) -> None:
        """Close the file; standard input stays open, as it belongs to the caller."""
        if self._owns_file:
            self._file.close()

    def fill(self, target: Bytes, *, has_data: bool = False) -> int:
        """
        Fill `target` with the next bytes.

        Args:
            target: The buffer.
            has_data: Whether earlier calls have delivered bytes that shall not wait long for more.

        Returns:
            Number of bytes; fewer than fit at the end of the file, and after a pause of a pipe, so
                that a live capture shows the data so far.
        """
        if not has_data and self._is_idle():
            return 0
        view = target.data
        filled = 0
        while filled < len(view) and not self.ended:
            if (filled or has_data) and self._is_paused():
                break
            count = self._read_into(view[filled:])
            self.ended = count == 0
            if not (filled or has_data):
                self._deadline_s = time.monotonic() + _PIPE_WAIT_S
            filled += count
        self.position += filled
        return filled

    def _is_idle(self) -> bool:
        """Wait for a pipe; return whether it was empty."""
        if self._poll is None or self._pending or self._stop.is_requested:
            return False
        if self._decompressed is not None:
            return False  # there may be bytes that are not decompressed yet
        return not self._poll(_IDLE_S)

    def _is_paused(self) -> bool:
        if self._poll is None or self._pending:
            return False
        left_s = self._deadline_s - time.monotonic()
        return left_s <= 0 or not self._poll(left_s)

    def _should_stop(self) -> bool:
        """Return whether to stop reading the file; of a pipe, wait for bytes first."""
        if self._poll is not None:
            while not self._poll(_PIPE_WAIT_S):
                waits_for_end = self._stop.ends_writer and not self._stop.is_overdue
                if self._stop.is_requested and not waits_for_end:
                    self.stopped = True
                    return True
        self.stopped = self._stop.is_overdue if self.is_live else self._stop.is_requested
        return self.stopped

    def _open(self, stdin: BinaryIO | None) -> BinaryIO | io.RawIOBase:
        if self.name in self._inputs:
            return self._inputs[self.name].open()
        if self.name == "-":
            return stdin if stdin is not None else _standard_input()
        try:
            return Path(self.name).open("rb", buffering=0)
        except OSError as error:
            raise self._capture_error(error) from None
        except ValueError:
            raise CaptureError(self.name, "no such file") from None

    def _capture_error(self, error: OSError) -> CaptureError:
        if isinstance(error, IsADirectoryError):
            return CaptureError(self.name, "is a directory")
        if isinstance(error, FileNotFoundError):
            return CaptureError(self.name, "no such file")
        if isinstance(error, PermissionError):
            return CaptureError(self.name, "permission denied")
        return CaptureError(self.name, (error.strerror or str(error)).lower())

    def _read(self, size: int) -> bytes:
        if self._should_stop():
            return b""
        try:
            data = self._file.read(size) or b""
        except OSError as error:
            raise self._capture_error(error) from None
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

    def _next_block(self) -> bool:
        """Get the next decompressed bytes; return False without any."""
        if self._decompressed is None:
            return False
        try:
            for block in self._decompressed:
                if block:
                    self._pending = memoryview(block)
                    return True
        except CompressedDataError as damage:
            self.problem = Problem(str(damage))
        return False

    def _read_into(self, view: memoryview) -> int:
        """Read some bytes, at least one; return 0 at the end."""
        if not self._pending and not self._next_block():
            if self.compression is not None:
                return 0
            if isinstance(self._file, io.RawIOBase):
                return self._read_direct(self._file, view)
            self._pending = memoryview(self._read(min(len(view), _CHUNK_BYTES)))
        chunk = self._pending[: len(view)]
        view[: len(chunk)] = chunk
        self._pending = self._pending[len(chunk) :]
        return len(chunk)

    def _read_direct(self, file: io.RawIOBase, view: memoryview) -> int:
        if self._should_stop():
            return 0
        try:
            count = file.readinto(view) or 0
        except OSError as error:
            raise self._capture_error(error) from None
        self.file_bytes += count
        return count


def _standard_input() -> BinaryIO | io.FileIO:
    """Return standard input without a buffer, which would hide available bytes."""
    try:
        return io.FileIO(sys.stdin.fileno(), closefd=False)
    except (OSError, ValueError):
        return sys.stdin.buffer


def _poll_of(file: BinaryIO | io.RawIOBase) -> Poll | None:
    """Return a function that waits for bytes of a pipe, or for more packets; None for others."""
    poll: Poll | None = getattr(file, "poll", None)
    if poll is not None or sys.platform == "win32" or not isinstance(file, io.FileIO):
        return poll
    if not stat.S_ISFIFO(os.fstat(file.fileno()).st_mode):
        return None
    return lambda seconds: bool(select.select([file], [], [], seconds)[0])
