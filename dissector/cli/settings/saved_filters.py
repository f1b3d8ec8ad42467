"""Filters that the settings name: `@slow` in a display filter."""

from __future__ import annotations

import re
from collections.abc import Mapping

from dissector.cli.settings.settings_file import SettingsFile, settings_file
from dissector.errors import UsageError, suggestion

FILTERS = "filters"
"""The table of the settings with filters by name."""

MAX_DEPTH = 8
"""Filters inside filters."""

MAX_TEXT = 1 << 16
"""Characters of a filter with those that it names."""

_NAME = r"[A-Za-z][\w-]*"
_PIECES = re.compile(rf"""("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|(?<![\w/:+@\[\]\-.])@({_NAME})""")
"""Texts in quotes, which stay; and names."""


def with_saved_filters(text: str) -> str:
    """
    Return a display filter with the filters that it names, each in parentheses.

    Raises:
        UsageError: The settings have no filter of that name, or one names itself.
    """
    if "@" not in text:
        return text
    settings = settings_file()
    return _expanded(text, saved_filters(settings), settings, MAX_DEPTH)


def saved_filters(settings: SettingsFile) -> Mapping[str, str]:
    """
    Return the filters of the settings by name.

    Raises:
        UsageError: One is no text, or its name can't be written after `@`.
    """
    found = settings.table_of(FILTERS)
    for name, text in found.items():
        if not re.fullmatch(_NAME, name):
            raise settings.error(f"{FILTERS}.{name}", "a name has letters, digits, _ and -")
        if not isinstance(text, str):
            raise settings.error(f"{FILTERS}.{name}", "must be a text, a display filter")
    return found


def completed(incomplete: str) -> list[str]:
    """Return the texts of which a filter that ends in a part of `@NAME` is the beginning."""
    before, sign, part = incomplete.rpartition("@")
    if not sign or re.search(r"[^\w-]", part):
        return []
    try:
        return [
            f"{before}@{name}" for name in saved_filters(settings_file()) if name.startswith(part)
        ]
    except UsageError:
        return []


def _expanded(text: str, filters: Mapping[str, str], settings: SettingsFile, depth: int) -> str:
    def replaced(found: re.Match[str]) -> str:
        name = found[2]
        if name is None:
            return found[0]
        if name not in filters:
            place = f"the table {FILTERS} of {settings.path or 'kafkashark.toml'}"
            raise UsageError(
                f"no filter @{name} in {place}{suggestion(name, filters)}"
                " (a value that begins with @ needs quotes)"
            )
        if not depth:
            raise settings.error(f"{FILTERS}.{name}", "names itself, or too many filters inside")
        return f"({_expanded(filters[name], filters, settings, depth - 1)})"

    whole = _PIECES.sub(replaced, text)
    if len(whole) > MAX_TEXT:
        raise UsageError(f"the filter has more than {MAX_TEXT:,} characters with those it names")
    return whole
