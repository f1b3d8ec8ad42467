"""Texts of declarations as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

_MARKS = re.compile(r"[\\`*_{}\[\]<>#|~]")


def escaped(text: str) -> str:
    """Return a text that shows as it is, also in a cell of a table."""
    return _MARKS.sub(r"\\\g<0>", text).replace("\\<", "&lt;").replace("\\>", "&gt;")


def table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table; its cells are Markdown."""
    yield f"| {' | '.join(heading)} |"
    yield "|" + "---|" * len(heading)
    yield from (f"| {' | '.join(row)} |" for row in rows)
