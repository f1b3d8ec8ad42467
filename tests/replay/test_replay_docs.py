"""`docs/replay.md` is correct."""

from __future__ import annotations

import re
from pathlib import Path

from dissector.cli.parsing.command_line import named_options
from dissector.cli.parsing.declarations import value_types
from replay.cli import ReplayOptions

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/replay.md").read_text()


def test_every_documented_option_exists() -> None:
    named = set(re.findall(r"--[a-z][a-z-]+", TEXT))
    assert named <= {*named_options(ReplayOptions.declared(), value_types(ReplayOptions))}
