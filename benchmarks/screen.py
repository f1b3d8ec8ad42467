"""The screen of `browse` on a large capture, against time limits and tshark."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.screen_process import SIZE, first_rows, parse_peaks
from benchmarks.timing import Row, process
from browse.app.browse_app import BrowseApp
from browse.detail import DetailPanes
from browse.listing.capture_opening import CaptureOpening
from browse.listing.exchange_loading import ExchangeLoading
from tools.record.steady import write

PACKETS = 1_000_000
MEMORY = 500e6
PAGES = 20
COLUMN_FILTER = "api == Produce and latency_ms > 5"
BODY_FILTER = "request.acks == 1"
LOADED, FILTERED = "all rows", "filter on columns"


def rows(folder: Path) -> Iterator[Row]:
    """Time the steps a user waits for; the ratio is the time limit divided by ours."""
    capture = folder / "screen.pcap"
    write(capture, PACKETS)
    took_s, cpu_s = first_rows(capture)
    figures = f"{took_s:.2f} s, {cpu_s:.2f} s of processor"
    yield Row("browse: first rows on a terminal", "allowed", 1.0 / took_s, figures, 1.0)
    found = asyncio.run(_times(capture))
    for what, (allowed_s, took_s) in found.items():
        yield Row(f"browse: {what}", "allowed", allowed_s / took_s, f"{took_s:.3f} s", 1.0)
    if (tshark := shutil.which("tshark")) is not None:
        # A screen on top of tshark, such as termshark, runs it anew for the list and each filter.
        for what, words in ((LOADED, ()), (FILTERED, ("-Y", "kafka.api_key == 0"))):
            peer = process((tshark, "-r", str(capture), *words), runs=1)
            took_s = next(each for name, (_, each) in found.items() if name.startswith(what))
            figures = f"{took_s:.2f} s against {peer.seconds:.1f} s"
            yield Row(f"browse: {what}", "tshark", peer.seconds / took_s, figures)
    if sys.platform == "linux":
        command = (sys.executable, "-m", "benchmarks.screen_process", str(capture))
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        for what, peak_bytes in parse_peaks(lines):
            figures = f"{peak_bytes / 1e6:.0f} MB"
            yield Row(f"browse: peak, {what}", "allowed", MEMORY / peak_bytes, figures, 1.0)


async def _times(capture: Path) -> dict[str, tuple[float, float]]:
    """Return limit and duration of each step."""
    times: dict[str, tuple[float, float]] = {}
    begin = time.perf_counter()
    access = CaptureOpening([str(capture)], {"jobs": 2}).access()
    loading = ExchangeLoading(access)
    loading.start()
    app = BrowseApp(access, loading, DetailPanes())
    async with app.run_test(size=SIZE) as pilot:
        while not loading.is_done:
            await pilot.pause(0.02)
        app.take_in()
        times[LOADED] = 10.0, time.perf_counter() - begin
        count = f"{len(loading.parts):,} exchanges"

        begin = time.perf_counter()
        for _ in range(PAGES):
            app.rows.action_page(1)
            _paint(app)
        times["a page down"] = 0.05, (time.perf_counter() - begin) / PAGES

        begin = time.perf_counter()
        app.rows.choose(len(loading.parts) - 1)
        _paint(app)
        times["a jump to the end"] = 0.05, time.perf_counter() - begin

        begin = time.perf_counter()
        app.apply_filter(COLUMN_FILTER)
        times[f"{FILTERED}, {count}"] = 0.3, time.perf_counter() - begin

        begin = time.perf_counter()
        app.apply_filter(BODY_FILTER)
        while app.session.run is not None and not app.session.run.is_done:
            await pilot.pause(0.02)
        times[f"filter on a field, {count}"] = 10.0, time.perf_counter() - begin
    return times


def _paint(app: BrowseApp) -> None:
    """Render the list."""
    for y in range(app.rows.size.height):
        app.rows.render_line(y)
