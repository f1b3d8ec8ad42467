"""A file that is still written, as an input without an end."""

from __future__ import annotations

import io
import os
import time
from pathlib import Path

from dissector.capture.formats.inputs import Input, PositionedReader

_LOOK_S = 0.2
"""Interval of checks for growth."""


class GrowingFile(Input):
    """A file in growth: reads at its end wait for more bytes."""

    is_rereadable = False

    def __init__(self, path: str) -> None:
        self._path = path

    def open(self) -> io.RawIOBase:
        """Open the file at its begin."""
        return _GrowingReader(Path(self._path).open("rb", buffering=0))


class _GrowingReader(PositionedReader):
    """Reads available bytes; `poll` marks it as a live source."""

    def __init__(self, file: io.FileIO) -> None:
        super().__init__(lambda position, count: os.pread(file.fileno(), count, position))
        self._file = file

    def poll(self, timeout_s: float) -> bool:
        """Wait until the file grows; return whether it did."""
        end_s = time.monotonic() + timeout_s
        while os.fstat(self._file.fileno()).st_size <= self.position:
            left_s = end_s - time.monotonic()
            if left_s <= 0:
                return False
            time.sleep(min(left_s, _LOOK_S))
        return True

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()
