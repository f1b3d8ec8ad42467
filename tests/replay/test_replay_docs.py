"""`docs/replay.md` is correct."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from replay.cli import replay

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/replay.md").read_text()


def test_the_example_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    found = re.search(r"<!-- example -->\n```python\n(.*?)```", TEXT, re.DOTALL)
    assert found is not None
    names: dict[str, object] = {}
    exec(compile(found[1], "docs/replay.md", "exec"), names)
    monkeypatch.chdir(ROOT)
    example = names["test_the_broker_still_answers_as_captured"]
    assert callable(example)
    example()


def test_every_documented_option_exists() -> None:
    named = {each.replace("-", "_") for each in re.findall(r"--([a-z][a-z-]+)", TEXT)}
    other = {"keylog": "keylogs"}
    assert {other.get(each, each) for each in named} <= {*replay.__annotations__}
