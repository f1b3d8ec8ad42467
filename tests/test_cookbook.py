"""The commands in docs/cookbook.md print the shown output."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dissector.cli import main
from tools.cookbook import PAGE, Example, examples, refreshed, set_up

TEXT = PAGE.read_text(encoding="utf-8")
EXAMPLES = list(examples(TEXT))


@pytest.mark.thinned(3)
@pytest.mark.parametrize("example", EXAMPLES, ids=[each.command[:60] for each in EXAMPLES])
def test_a_command_prints_the_output_in_the_cookbook(
    example: Example,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """To refresh the page: `python -m tools.cookbook --write`."""
    set_up(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert main(example.words[1:]) == example.status
    assert example.block == example.excerpt(capsys.readouterr().out.splitlines())


def test_the_cookbook_has_forty_examples() -> None:
    questions = re.findall(r"^## .*\?$", TEXT, re.MULTILINE)
    assert len(questions) >= 40
    assert len(EXAMPLES) == len(questions) == len(set(questions)) == TEXT.count("$ kafkashark")


def test_a_page_is_refreshed() -> None:
    page = "a\n```console\n$ kafkashark x  # status 1\nold\n...\n```\nb\n```console\n$ y\n```\n"
    new = refreshed(page, lambda example: [f"{example.status} new", "more"])
    assert new == (
        "a\n```console\n$ kafkashark x  # status 1\n1 new\n...\n```\n"
        "b\n```console\n$ y\n0 new\nmore\n```\n"
    )
