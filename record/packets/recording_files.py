"""The files of a recording: one, a ring of several, or standard output."""

from __future__ import annotations

import sys
from collections import deque
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from dissector.capture.writing.capture_writer import CaptureWriter
from dissector.cli.live_input import Ring
from dissector.errors import UsageError
from dissector.file_roles import STANDARD_STREAM, open_output

_ETHERNET = 1


class RecordingFiles:
    """
    Writes packets to a pcapng file, or to the next file of a ring once one is full.

    Args:
        path: The file; `-` for standard output; with a ring, the name from which the names of its
            files are made, as `OUT_00001_20261123120000.pcapng`.
        ring: The limits of the ring; None for one file.

    Raises:
        UsageError: The file cannot be written.
    """

    def __init__(self, path: str, ring: Ring | None = None) -> None:
        if path == STANDARD_STREAM and ring is not None:
            raise UsageError("--ring takes files, not standard output")
        self._path = Path(path)
        self._ring = ring
        self._number = 0
        self._kept: deque[Path] = deque()
        try:
            self._file = sys.stdout.buffer if path == STANDARD_STREAM else self._next_file()
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror}") from None
        self._size = 0
        self._writer = self._new_writer()
        # The file is a capture from the begin; what fails here fails again at the first packet.
        with suppress(OSError):
            self._file.flush()

    def write(self, time_ns: int, packet: bytes) -> None:
        """
        Write a packet.

        Raises:
            OSError: The disk is full, or the reader of the pipe is gone.
        """
        if self._ring is not None and self._size >= self._ring.file_kb * 1000:
            self._file.close()
            self._file = self._next_file()
            self._size = 0
            self._writer = self._new_writer()
        self._writer.write(time_ns, _ETHERNET, packet, len(packet))
        self._size += len(packet)

    def flush(self) -> None:
        """Give what was written to the system, so that others can read it; raises OSError."""
        self._file.flush()

    def close(self) -> None:
        """Close the file; what can't be written any more is lost."""
        with suppress(OSError):
            if self._file is sys.stdout.buffer:
                self._file.flush()
            else:
                self._file.close()

    def _next_file(self) -> BinaryIO:
        path = self._path
        if self._ring is not None:
            self._number += 1
            stamp = datetime.now().strftime("%Y%m%d%H%M%S")
            path = path.with_name(f"{path.stem}_{self._number:05}_{stamp}{path.suffix}")
            self._kept.append(path)
            if len(self._kept) > self._ring.files:
                self._kept.popleft().unlink(missing_ok=True)
        return open_output(path)

    def _new_writer(self) -> CaptureWriter:
        writer = CaptureWriter(self._file)
        writer.start_section()
        return writer
