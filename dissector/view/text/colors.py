"""Colours of rows and lines on a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

BOLD, RED, YELLOW, PLAIN = (f"\x1b[{code}m" for code in (1, 31, 33, 0))

_INCOMPLETE = ("unanswered", "orphan", "waiting")


def row_color(row: Mapping[str, Any]) -> str:
    """Return the colour of a row: red with errors or problems, yellow without a counterpart."""
    is_bad = row.get("errors") or row.get("problems") or row.get("error") not in (None, "NONE")
    if is_bad:
        return RED
    return YELLOW if row.get("status") in _INCOMPLETE else ""
