"""README's examples print what it says, and its filters are some."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from dissector.cli import main
from dissector.filter import parse

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
LINES = [
    line
    for block in re.findall(r"```console\n(.*?)```", README, re.DOTALL)
    for line in block.splitlines()
]
COMMANDS = [line.removeprefix("$ ") for line in LINES if line.startswith("$ kafkashark ")]


def printed(command: str) -> list[str]:
    """Return the lines that README shows below a command."""
    below = LINES[LINES.index(f"$ {command}") + 1 :]
    end = next((at for at, line in enumerate(below) if line.startswith("$ ")), len(below))
    return [line.rstrip() for line in below[:end] if line.strip()]


@pytest.mark.parametrize("command", [each for each in COMMANDS if printed(each)])
def test_a_command_prints_what_readme_shows(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Lines follow one another as README has them; `...` stands for any number of others."""
    monkeypatch.chdir(ROOT)
    assert main(shlex.split(command)[1:]) == 0
    out = [line.rstrip() for line in capsys.readouterr().out.splitlines() if line.strip()]
    shown, at, skips = printed(command), 0, True
    for line in shown:
        if line.strip() == "...":
            skips = True
            continue
        assert line in out[at:], f"not printed any more: {line}"
        assert skips or out[at] == line, f"another line comes first: {out[at]}"
        at += out[at:].index(line) + 1
        skips = False
    assert skips or at == len(out), "more lines follow, without ..."


def test_there_are_such_commands() -> None:
    assert sum(1 for each in COMMANDS if printed(each)) >= 2


@pytest.mark.parametrize("command", [each for each in COMMANDS if " -Y " in each])
def test_its_filters_are_filters(command: str) -> None:
    words = shlex.split(command)
    parse(words[words.index("-Y") + 1], records=words[1] == "records")
