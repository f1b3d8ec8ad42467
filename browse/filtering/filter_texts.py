"""Text of filters: literals, and conjunctions."""

from __future__ import annotations

import re
from collections.abc import Iterable

_BARE = re.compile(r"[A-Za-z_][\w\-]*")
_WORDS = {
    *("and", "or", "not", "in", "contains", "matches", "any", "all", "null", "true", "false"),
    *("eq", "ne", "lt", "le", "gt", "ge", "all_eq", "any_ne"),
}


def literal(value: object) -> str:
    """Return a value as a literal of the filter language."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    from dissector.filter.literals import Literal

    text = str(value)
    is_bare = _BARE.fullmatch(text) and text.lower() not in _WORDS and text.isascii()
    if is_bare:
        return text
    # Escaped, because filters are shown on the screen.
    return "".join(map(_printable, str(Literal(text, quoted=True))))


def _printable(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if not character.isprintable() and code <= 0xFFFF else character


def joined(filters: Iterable[str]) -> str:
    """Return the conjunction of some filters; empty without any."""
    given = [each for each in filters if each.strip()]
    return given[0] if len(given) == 1 else " and ".join(f"({each})" for each in given)
