"""docs/python.md names what exists; its examples are in `tests.test_docs`."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")


def test_the_page_has_all_methods_of_a_capture() -> None:
    from kafkashark import Capture

    for name in re.findall(r"`(\w+)\([^`]*\)`", PAGE[: PAGE.index("## Packets")]):
        assert hasattr(Capture, name) or name in ("close",), name
