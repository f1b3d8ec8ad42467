"""Values as texts in a page: masked, shortened, without control characters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dissector.view.text.escape import escaped
from dissector.view.text.value_text import time_text

MAX_TEXT = 300
"""Maximum number of characters; Kafka's names may have 32,767."""


class SafeText:
    """
    Converts values to texts.

    Escaping for HTML and JSON is left to those who write them.
    """

    def __init__(self, mask: Callable[[str], str] = str) -> None:
        """Start; `mask` returns a text, or a mask if it holds a credential."""
        self._mask = mask

    def text(self, value: Any) -> str:
        """Return a text from a capture; empty for None."""
        if value is None:
            return ""
        shown = escaped(self._mask(str(value)))
        return shown if len(shown) <= MAX_TEXT else f"{shown[:MAX_TEXT]}…"

    def value(self, value: Any) -> Any:
        """Return a value of a table: numbers, and all others as text."""
        match value:
            case None | bool() | int() | float():
                return value
            case list() | tuple():
                return self.text(", ".join(map(str, value)))
            case _:
                return self.text(value)


def counted_bytes(count: int) -> str:
    """Return a number of bytes with a unit: `1.2 MB`."""
    if count < 1_000:
        return f"{count} bytes"
    for unit in ("kB", "MB", "GB"):
        count_of_unit = count / 1_000
        if count_of_unit < 1_000 or unit == "GB":
            break
        count = count // 1_000
    return f"{count_of_unit:,.1f} {unit}"


def time_us(time_ns: int | None) -> str:
    """Return a time in UTC to the microsecond; empty for None."""
    if time_ns is None:
        return ""
    text = time_text(time_ns)
    return f"{text[:-4]}Z" if text.endswith("Z") else text


def first_words(names: Sequence[str], most: int = 3) -> str:
    """Return the first names, and the number of others."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
