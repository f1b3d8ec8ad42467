"""Lines of text wrapped at the width of a terminal."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator

_LABEL = re.compile(r" *(\S+ {2,})?")
"""The begin of a line: its indentation, and a word that labels the rest."""
_LEAST_TEXT = 20


def wrapped(lines: Iterable[str], width: int | None) -> Iterator[str]:
    """
    Yield lines that fit a width, those that follow below the text of the first one.

    Args:
        lines: Lines; `label  text` continues below `text`.
        width: The width; None for lines of any length.
    """
    for line in lines:
        if width is None or len(line) <= width:
            yield line
            continue
        found = _LABEL.match(line)
        indent = len(found[0]) if found is not None else 0
        yield from textwrap.wrap(
            line,
            max(width, _LEAST_TEXT),
            subsequent_indent=" " * min(indent, max(0, width - _LEAST_TEXT)),
            break_on_hyphens=False,
            replace_whitespace=False,
        )
