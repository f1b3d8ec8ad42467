"""Colours of rows and lines on a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

BOLD, RED, YELLOW, PLAIN = (f"\x1b[{code}m" for code in (1, 91, 93, 0))
"""Bright colours: the dark ones are hard to read on black."""

_INCOMPLETE = ("unanswered", "orphan", "waiting")


def row_color(row: Mapping[str, Any]) -> str:
    """Return the colour for a row: red with errors or problems, yellow without a counterpart."""
    is_bad = row.get("errors") or row.get("problems") or row.get("error") not in (None, "NONE")
    if is_bad:
        return RED
    return YELLOW if row.get("status") in _INCOMPLETE else ""


def colored(text: str, begin: int, end: int, color: str) -> str:
    """Return a text with one part in a colour."""
    part = text[begin:end]
    return f"{text[:begin]}{color}{part}{PLAIN}{text[end:]}" if part else text
