"""How far a replay is, on stderr where that is a terminal."""

from __future__ import annotations

import sys
import time
from typing import Self

from dissector.view.escape import escaped
from replay.report import Report
from replay.run import Run

PATIENCE_S = 1.0
"""A replay that is done sooner shows nothing."""


class Line:
    """One line that is written over; it is taken away at the end."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._is_shown = False
        self._said = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._clear()

    def _clear(self) -> None:
        if self._is_shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
        self._is_shown = False

    def show(self, run: Run, report: Report) -> None:
        """Write what is new, and on a terminal how far the run is."""
        for notice in run.progress.notices[self._said :]:
            self._clear()
            print("kafkashark:", escaped(notice), file=sys.stderr, flush=True)
            self._said += 1
        passed_s = time.monotonic() - self._begun
        if passed_s < PATIENCE_S or not sys.stderr.isatty():
            return
        print(f"\r\x1b[K{text(run, report)}, {passed_s:.0f} s", end="", file=sys.stderr, flush=True)
        self._is_shown = True


def text(run: Run, report: Report) -> str:
    """Say how far a run is."""
    at = run.progress
    waits = f", waiting for {next(iter(at.waits.values()))}" if at.waits else ""
    return (
        f"{at.sent:,} of {at.total:,} sent, {at.sent - at.done:,} in flight, "
        f"{at.done:,} answered, {report.failing:,} differ, {at.lag_ns / 1e6:.1f} ms late{waits}"
    )
