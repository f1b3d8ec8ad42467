"""Progress of a long command, printed on stderr if that is a terminal."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from types import TracebackType

from dissector.engine.reading.capture import Capture

_MB = 1_000_000
PATIENCE_S = 1.0
"""Commands that finish sooner show no progress."""


class Progress:
    """A line that is overwritten in place: bytes read so far, of all bytes of the files."""

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self._start_s = time.monotonic()
        self._shown = False
        self._total_bytes = _total_size(capture.paths)

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.clear()

    def show(self) -> None:
        """Print the progress of the reading."""
        reading = self._capture.reading
        if reading is None or not sys.stderr.isatty():
            return
        elapsed_s = time.monotonic() - self._start_s
        if elapsed_s < PATIENCE_S:
            return
        share = f" of {_size(self._total_bytes)}" if self._total_bytes else ""
        read = f"{_size(reading.source.file_bytes)}{share}"
        text = f"{read}, {reading.packets:,} packets, {elapsed_s:.0f} s"
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
        self._shown = True

    def clear(self) -> None:
        """Erase the line before other output."""
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            self._shown = False


def _total_size(paths: list[str]) -> int:
    """Return the size of all files together; 0 if one of them has no size, like standard input."""
    sizes = [Path(path).stat().st_size if Path(path).is_file() else 0 for path in paths]
    return sum(sizes) if all(sizes) else 0


def _size(count: int) -> str:
    """Return a number of bytes; of small files in kB."""
    return f"{count / 1e6:,.0f} MB" if count >= _MB else f"{count / 1e3:,.0f} kB"
