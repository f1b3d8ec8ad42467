"""The command `browse`, mostly without a terminal."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from browse.cli import browse
from dissector.cli import main
from tests.browse.screens import DEMO
from tests.waiting import child


def run(*words: str) -> int:
    return main(["browse", *words], [("browse", browse)])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((str(DEMO),), "requires a terminal"),
        (("nothere.pcap",), "nothere.pcap: no such file"),
        ((str(DEMO), "-Y", "api ==="), "filter, character "),
        (("nothere.pcap", "--follow"), "nothere.pcap: no such file"),
        ((str(DEMO), "--web", "--address", "8000"), "HOST:PORT"),
        (("-", "--web"), "--web requires files"),
        (("-", str(DEMO)), "cannot combine - with files"),
        (("-", "--follow"), "--follow requires a file"),
        ((), "no input"),
    ],
)
def test_errors_are_one_line(
    words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*words) == 2
    found = capsys.readouterr()
    assert message in found.err
    assert not found.out
    assert "Traceback" not in found.err


def test_a_file_other_than_a_capture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("no packets")
    assert run(str(file)) == 2
    assert str(file) in capsys.readouterr().err


@pytest.mark.long
def test_sigterm_leaves_the_terminal_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("TERM", "xterm")
    ours, theirs = pty.openpty()
    words = [sys.executable, "-m", "kafkashark", "browse", str(DEMO)]
    with child(subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs)) as process:
        os.close(theirs)
        seen = bytearray()
        while b"ApiVersions" not in seen:
            seen += os.read(ours, 1 << 16)
        process.send_signal(signal.SIGTERM)
        try:
            while more := os.read(ours, 1 << 16):
                seen += more
        except OSError:  # its end closes the terminal
            pass
    os.close(ours)
    assert process.returncode == 128 + signal.SIGTERM
    leave_other_screen = b"\x1b[?1049l"
    assert leave_other_screen in seen
