"""`docs/replay.md` is correct."""

from __future__ import annotations

import re
from pathlib import Path

from replay.cli import replay

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/replay.md").read_text()


def test_every_documented_option_exists() -> None:
    named = {each.replace("-", "_") for each in re.findall(r"--([a-z][a-z-]+)", TEXT)}
    other = {"keylog": "keylogs"}
    assert {other.get(each, each) for each in named} <= {*replay.__annotations__}
