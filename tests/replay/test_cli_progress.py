"""The progress line on stderr."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from replay import cli_progress
from replay.run.runner import Progress
from tests.replay.support.reports import made, outcomes


def _run() -> Any:
    return SimpleNamespace(progress=Progress(sent=1200, done=1190, total=5000, lag_ns=1_500_000))


def test_the_line_shows_progress_of_the_run() -> None:
    assert cli_progress.progress_text(_run(), made(*outcomes()[:2])) == (
        "1,200 of 5,000 sent, 10 in flight, 1,190 answered, 1 differ, 1.5 ms late"
    )


@pytest.mark.parametrize("is_terminal", [True, False])
def test_the_line_is_shown_on_a_terminal_and_erased(
    is_terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli_progress, "SHOW_AFTER_S", 0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    with cli_progress.ProgressLine() as line:
        line.show(_run(), made(outcomes()[0]))
        shown = capsys.readouterr().err
    assert ("1,200 of 5,000 sent" in shown) is is_terminal
    assert capsys.readouterr().err == ("\r\x1b[K" if is_terminal else "")


def test_short_replays_show_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(cli_progress, "SHOW_AFTER_S", 1e9)
    with cli_progress.ProgressLine() as line:
        line.show(_run(), made(outcomes()[0]))
    assert not capsys.readouterr().err
