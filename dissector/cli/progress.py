"""How far a long command has come, on stderr where that is a terminal."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from types import TracebackType

from dissector.engine.reading.capture import Capture

PATIENCE_S = 1.0
"""Work that is done sooner shows nothing."""


class Progress:
    """One line that is written over: bytes of the files read, and how many of all."""

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
        """Write how far the reading has come."""
        reading = self._capture.reading
        if reading is None or not sys.stderr.isatty():
            return
        passed = time.monotonic() - self._start_s
        if passed < PATIENCE_S:
            return
        share = f" of {self._total_bytes / 1e6:,.0f} MB" if self._total_bytes else ""
        read = f"{reading.source.file_bytes / 1e6:,.0f} MB{share}"
        text = f"{read}, {reading.packets:,} packets, {passed:.0f} s"
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
        self._shown = True

    def clear(self) -> None:
        """Take the line away, so that something else can be written."""
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            self._shown = False


def _total_size(paths: list[str]) -> int:
    """Return the size of all files together; 0 where one of them has none, as standard input."""
    sizes = [Path(path).stat().st_size if Path(path).is_file() else 0 for path in paths]
    return sum(sizes) if all(sizes) else 0
