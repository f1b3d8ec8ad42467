"""Literals of a filter."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Literal:
    """A value as written in the filter: its text without quotes, and whether it was quoted."""

    text: str
    quoted: bool = False

    @property
    def is_null(self) -> bool:
        """Whether it is the word `null`; in quotes it is a text."""
        return not self.quoted and self.text == "null"

    def __str__(self) -> str:
        return f'"{_escaped(self.text)}"' if self.quoted else self.text


_CASE_SENSITIVE = "(?-i)"


def _escaped(text: str) -> str:
    text = text.replace("\\", "\\\\").replace('"', '\\"')
    return re.sub(r"[\x00-\x1f\x7f-\x9f]", lambda m: f"\\x{ord(m[0]):02x}", text)


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """
    Compile a regular expression, which ignores case unless it begins with `(?-i)`.

    Source: Wireshark's manual page of display filters, "matches".

    Raises:
        ValueError: It is not a regular expression.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # Python's own syntax can turn the flag off only for a group.
            exact = pattern.startswith(_CASE_SENSITIVE)
            return re.compile(pattern.removeprefix(_CASE_SENSITIVE), 0 if exact else re.IGNORECASE)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"not a regular expression: {error}") from None
