"""Help, compared with golden files."""

from __future__ import annotations

from pathlib import Path

import pytest

from dissector.cli.declared.builtin_commands import BUILTIN
from dissector.cli.parsing.declarations import Command
from dissector.cli.parsing.help_text import title_of
from tests.dissector.cli.conftest import Run

HELP = Path(__file__).parent / "help"
INSTALLED = (
    "advise",
    "browse",
    "conform",
    "exporter",
    "findings",
    "mcp",
    "pipeline",
    "record",
    "replay",
    "report",
    "serve",
    "timeline",
    "wireshark",
)
COMMANDS = (*(each.__name__ for each in BUILTIN), "demo", *INSTALLED)


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_equals_the_golden_file(
    good: Run, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, command: str
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    text = good(*([command] if command else []), "--help").out
    file = HELP / f"{command or 'kafkashark'}.txt"
    if request.config.getoption("--update-golden"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    assert text == file.read_text(), "if intended: pytest --update-golden with this file"


@pytest.mark.parametrize(("columns", "longest"), [("40", 50), ("70", 70), ("500", 100)])
def test_lines_fit_the_terminal(
    good: Run, monkeypatch: pytest.MonkeyPatch, columns: str, longest: int
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    text = good("dissect", "--help").out.partition("Examples:")[0]
    assert longest - 6 <= max(map(len, text.splitlines())) <= longest


def test_each_option_is_in_the_help_of_its_command(good: Run) -> None:
    for each in BUILTIN:
        command = Command.of(each.__name__, each)
        shown = good(command.name, "-h").out
        titles = [title_of(option) for option in command.options.declared().values()]
        assert [title for title in titles if f"\n  {title}" not in shown] == []
