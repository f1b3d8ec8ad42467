"""Completion of the word at the cursor of the filter bar."""

from __future__ import annotations

import re
from itertools import chain

from browse.filtering.filter_texts import literal
from browse.rows.byte_spool import SpooledHeaders
from browse.rows.row_parts import RowParts
from dissector.cli.presentation.completion import filter_words
from dissector.engine.tables.column_types import Coded

MOST = 12
"""Maximum number of suggestions."""
_MAX_PARTS = 50
_VALUE = re.compile(
    r"""(?<![\w.])([a-z_]+)\s*(?:[!=]==?|\bcontains|\beq|\bne|\bin\s*\{[^}]*?)\s*("?[\w.\-:]*)$"""
)
_HEADER = re.compile(r"(?<![\w.])(headers?\.)[\w.]*$")
_PLAIN = re.compile(r"[\w.]+")
"""A header that a filter can name without quotes, and that is completed as one word."""
_MAX_HEADER_PARTS, _MAX_HEADER_ROWS = 4, 64
_COLUMNS = {"error": "errors", "topic": "topics"}


class FilterWords:
    """Names in filters; a thread lists them, as this takes a moment."""

    def __init__(self) -> None:
        self._names: dict[bool, tuple[str, ...]] = {}

    def prepare(self) -> None:
        """List the names, in a background thread."""
        from dissector.filter import field_list

        for records in (False, True):
            names = (name for name, _, _ in field_list(records=records))
            # The list has their names instead of `header.NAME`.
            self._names[records] = tuple(name for name in names if not name.endswith(".NAME"))

    def suggestions(self, text: str, parts: RowParts, *, records: bool = False) -> list[str]:
        """Return completed texts for the text before the cursor, the best first."""
        if found := _VALUE.search(text):
            typed, before = found[2].strip('"').lower(), text[: found.start(2)]
            values = _values(_COLUMNS.get(found[1], found[1]), parts)
            words = [each for each in values if each.strip('"').lower().startswith(typed)]
            if words:
                return [before + each for each in words if each != found[2]][:MOST]
        before, names = filter_words(
            text, (*self._names.get(records, ()), *_header_names(text, parts))
        )
        word = text[len(before) :]
        if not word:
            return []
        # The next level first: `request.topics` before its fields.
        ordered = sorted(names, key=lambda name: (name.count("."), name))
        return [before + name for name in ordered if name != word][:MOST]


def _header_names(text: str, parts: RowParts) -> list[str]:
    """Return the headers of the first records, as the prefix of the last word names them."""
    prefix = _HEADER.search(text)
    if prefix is None:
        return []
    keys = {
        header["key"]
        for part in parts.parts[:_MAX_HEADER_PARTS]
        if isinstance(column := part.get("headers"), SpooledHeaders)
        for header in chain.from_iterable(
            map(column.value, range(min(len(column), _MAX_HEADER_ROWS)))
        )
    }
    return [prefix[1] + key for key in sorted(keys) if _PLAIN.fullmatch(key)]


def _values(column: str, parts: RowParts) -> list[str]:
    """Return the values of a text column as literals of the filter language."""
    values: set[str] = set()
    for part in parts.parts[:_MAX_PARTS]:
        coded = part.get(column)
        if not isinstance(coded, Coded):
            return []
        for value in coded.values:
            values.update(value if isinstance(value, list) else [value])
    return [literal(each) for each in sorted(str(value) for value in values if value)]
