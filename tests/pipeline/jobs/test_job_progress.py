"""The progress line of a job."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline.jobs.job_progress import Progress


class Terminal(io.StringIO):
    """A terminal that records its output."""

    def isatty(self) -> bool:
        return True


def _context(*stages: tuple[int, int]) -> Any:
    tracker = SimpleNamespace(
        getActiveStageIds=lambda: [*range(len(stages)), 99],
        getStageInfo=lambda each: (
            SimpleNamespace(numCompletedTasks=stages[each][0], numTasks=stages[each][1])
            if each < len(stages)
            else None
        ),
    )
    return SimpleNamespace(statusTracker=lambda: tracker)


def test_the_line_has_the_stage_and_its_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr("pipeline.jobs.job_progress.monotonic", lambda: clock.now)
    progress = Progress(_context((3, 8), (0, 4)))
    progress.set_stage("dissecting")
    assert progress.line() == "dissecting, 3 of 12 tasks, 0 s"
    progress = Progress(_context())
    progress.set_stage("looking for captures")
    clock.now += 90
    assert progress.line() == "looking for captures, 90 s"


@pytest.mark.parametrize("screen", [io.StringIO, Terminal])
def test_progress_is_shown_on_terminals_only(screen: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    written = screen()
    monkeypatch.setattr(sys, "stderr", written)
    # No line becomes due during the rest, however slow the machine.
    monkeypatch.setattr("pipeline.jobs.job_progress.EVERY_S", 3600)
    with Progress(_context((1, 2))) as progress:
        progress.set_stage("dissecting")
    assert written.getvalue() == ("\r\x1b[K" if screen is Terminal else "")
