"""
The screen as a whole process: when it shows the first rows, and its memory list by list.

    python -m benchmarks.screen_process CAPTURE    # prints the peak of each list
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import re
import signal
import struct
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.timing import caching_environment
from browse.app.browse_app import BrowseApp
from browse.detail import DetailPanes
from browse.listing.capture_opening import CaptureOpening
from browse.listing.exchange_loading import ExchangeLoading
from browse.listing.list_columns import MODES
from browse.rows.freed_memory import limit_free_memory

SIZE = (160, 50)
_ROW = re.compile(rb"ApiVersions|Metadata|Produce|Fetch")
_WAIT_S = 60.0
_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def first_rows(capture: Path, runs: int = 3) -> tuple[float, float]:
    """
    Time the command from its start to rows on its terminal.

    Returns:
        Seconds by the clock, and of the processor; the shortest of several runs.
    """
    return min(_first_rows(capture) for _ in range(runs))


def _first_rows(capture: Path) -> tuple[float, float]:
    words = [sys.executable, "-m", "kafkashark", "browse", str(capture)]
    around = {**caching_environment(), "TERM": "xterm-256color"}
    begin = time.perf_counter()
    child, terminal = pty.fork()
    if child == 0:
        os.execve(sys.executable, words, around)
    width, height = SIZE
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
    painted = b""
    try:
        while not _ROW.search(painted) and time.perf_counter() - begin < _WAIT_S:
            painted += os.read(terminal, 1 << 16)
        seconds = time.perf_counter() - begin
    finally:
        os.kill(child, signal.SIGKILL)
        usage = os.wait4(child, 0)[2]
        os.close(terminal)
    return seconds, usage.ru_utime + usage.ru_stime


async def _peaks(capture: Path) -> list[tuple[str, int]]:
    """Return the rows of each list, and the peak of memory while it was read and shown."""
    limit_free_memory()
    access = CaptureOpening([str(capture)], {"jobs": 2}).access()
    loading = ExchangeLoading(access)
    loading.start()
    app = BrowseApp(access, loading, DetailPanes())
    found: list[tuple[str, int]] = []
    async with app.run_test(size=SIZE) as pilot:
        while not loading.is_done:
            await pilot.pause(0.02)
        for index, mode in enumerate(MODES):
            if index:
                _RESET.write_text("5")
                app.action_mode(index)
            while app.session.run is not None and not app.session.run.is_done:
                await pilot.pause(0.02)
            app.take_in()
            await pilot.pause()
            found.append((f"{len(app.session.shown):,} {mode.name}", _peak_bytes()))
    return found


def _peak_bytes() -> int:
    """Return the highest resident memory since the last reset."""
    fields = dict(line.split(":", 1) for line in _STATUS.read_text().splitlines())
    return int(fields["VmHWM"].split()[0]) * 1024


def parse_peaks(lines: str) -> Iterator[tuple[str, int]]:
    """Yield what the process has printed: a list, and its peak in bytes."""
    for line in lines.splitlines():
        what, _, peak = line.rpartition("\t")
        yield what, int(peak)


if __name__ == "__main__":
    for name, peak_bytes in asyncio.run(_peaks(Path(sys.argv[1]))):
        print(f"{name}\t{peak_bytes}")
