"""The commands of CONTRIBUTING.md exist, and take the options that it gives them."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")

COMMANDS = sorted(
    {
        " ".join(each.split("  #")[0].split())
        for each in re.findall(r"(?:(?<=`)|(?<=\$ ))((?:\.venv/bin/|make )[^`\n]+)", TEXT)
    }
)


def words_of(start: str) -> list[list[str]]:
    """Return the commands that begin so: the words after that."""
    return [shlex.split(each.removeprefix(start)) for each in COMMANDS if each.startswith(start)]


def test_every_command_names_the_environment() -> None:
    assert len(COMMANDS) > 20
    assert not re.search(r"(?<!\.venv/bin/)\b(?:python -m|pytest tests)", TEXT)


def test_every_make_target_exists() -> None:
    rules = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target, *_ in words_of("make "):
        assert re.search(rf"^{target}:", rules, re.MULTILINE), target


@pytest.mark.long
@pytest.mark.parametrize("words", words_of(".venv/bin/python -m "), ids=" ".join)
def test_every_module_runs_and_knows_the_options(words: list[str]) -> None:
    module, *rest = words
    source = ROOT / f"{module.replace('.', '/')}.py"
    if not source.exists():
        source = source.with_suffix("") / "__main__.py"
    # Some of them have a parser of their own; each takes its options from its source's folder.
    texts = [source.read_text(encoding="utf-8")]
    texts += [each.read_text(encoding="utf-8") for each in source.parent.glob("command*.py")]
    for option in (word.strip("[]") for word in rest):
        if option.startswith("--") and option != "--help":
            assert any(f'"{option}"' in text for text in texts), (module, option)
    code = f"import importlib; importlib.import_module({module!r})"
    if source.name != "__main__.py":
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True)


def test_every_tested_path_exists() -> None:
    for words in words_of(".venv/bin/pytest "):
        for word in words:
            if word.startswith("tests/") and not word.endswith("..."):
                assert (ROOT / word).exists(), word


def test_every_named_file_exists() -> None:
    for each in re.findall(r"`((?:dissector|replay|conform|tests|tools)/[^` ]+)`", TEXT):
        path = each.rstrip("/")
        if "*" not in path:
            assert (ROOT / path).exists(), path
