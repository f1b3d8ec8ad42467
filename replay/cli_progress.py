"""The progress of a replay, on stderr if that is a terminal."""

from __future__ import annotations

import sys
import time
from typing import Self

from dissector.view.text.escape import escaped
from replay.report.report import Report
from replay.run.runner import ReplayRun

SHOW_AFTER_S = 1.0
"""Seconds before progress is shown, so that a short replay shows none."""


class ProgressLine:
    """A progress line that is overwritten, and cleared at the end."""

    def __init__(self) -> None:
        self._started_s = time.monotonic()
        self._is_shown = False
        self._notices_shown = 0
        self._run: ReplayRun | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._clear()

    def _clear(self) -> None:
        if self._is_shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
        self._is_shown = False

    def show(self, run: ReplayRun, report: Report) -> None:
        """Write new notices, and on a terminal the progress of the run."""
        if run is not self._run:
            self._run, self._notices_shown = run, 0
        for notice in run.progress.notices[self._notices_shown :]:
            self._clear()
            print("kafkashark:", escaped(notice), file=sys.stderr, flush=True)
            self._notices_shown += 1
        passed_s = time.monotonic() - self._started_s
        if passed_s < SHOW_AFTER_S or not sys.stderr.isatty():
            return
        print(
            f"\r\x1b[K{progress_text(run, report)}, {passed_s:.0f} s",
            end="",
            file=sys.stderr,
            flush=True,
        )
        self._is_shown = True


def progress_text(run: ReplayRun, report: Report) -> str:
    """Return the progress of a run as text."""
    progress = run.progress
    in_flight, lag_ms = progress.sent - progress.done, progress.lag_ns / 1e6
    waits = f", waiting for {next(iter(progress.waits.values()))}" if progress.waits else ""
    return (
        f"{progress.sent:,} of {progress.total:,} sent, {in_flight:,} in flight, "
        f"{progress.done:,} answered, {report.failing:,} differ, {lag_ms:.1f} ms late{waits}"
    )
