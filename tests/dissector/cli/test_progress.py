from __future__ import annotations

import io
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from dissector.cli import progress
from dissector.cli.capture_source import source
from dissector.cli.declared.reading_options import ReadingOptions
from dissector.cli.progress import Progress
from dissector.engine.reading.capture import Capture
from tests.dissector.cli.conftest import Run


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal as stderr, and progress shown without delay."""
    terminal = Terminal()
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=terminal))
    monkeypatch.setattr(progress, "PATIENCE_S", 0)
    return terminal


def test_progress_is_shown_and_erased(shop: Path, terminal: Terminal) -> None:
    capture = Capture([shop])
    with Progress(capture) as shown:
        shown.show()
        assert terminal.getvalue() == "", "nothing is read yet"
        list(capture)
        shown.show()
        assert re.match(r"\r\x1b\[K(\d+ kB) of \1, 49 packets, 0 s", terminal.getvalue())
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_progress_of_standard_input_has_no_total(shop: Path, terminal: Terminal) -> None:
    capture = Capture([shop])
    list(capture)
    capture.paths = ["-", str(shop)]
    with Progress(capture) as shown:
        shown.show()
    assert " of " not in terminal.getvalue()


def test_only_shown_progress_is_erased(shop: Path, terminal: Terminal) -> None:
    with Progress(Capture([shop])) as shown:
        shown.clear()
    assert terminal.getvalue() == ""


def test_short_work_shows_nothing(
    shop: Path, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "PATIENCE_S", 3600)
    capture = Capture([shop])
    list(capture)
    with Progress(capture) as shown:
        shown.show()
    assert terminal.getvalue() == ""


def test_no_progress_unless_stderr_is_a_terminal(
    good: Run, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "PATIENCE_S", 0)
    assert good("pairs", shop).err == ""


def test_damage_is_reported_on_its_own_line(
    shop: Path, tmp_path: Path, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", terminal)
    path = tmp_path / "cut.pcap"
    path.write_bytes(shop.read_bytes()[:-1])
    chosen = source(ReadingOptions(captures=[str(path)]))
    list(chosen.exchanges())
    before, _, after = terminal.getvalue().partition("kafkashark: ")
    assert before == ""
    assert after.split("\n")[0].startswith(f"{path}: cut off")
    assert re.match(r"\r\x1b\[K\d+ kB of \d+ kB", after.split("\n")[1])
    assert after.endswith("\r\x1b[K")
