"""The command `browse`, tested without a terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from browse.cli import browse
from dissector.cli import main
from tests.browse.screens import DEMO


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
