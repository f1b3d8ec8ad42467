"""Marks of rows, named by letters."""

from __future__ import annotations

LAST = "'"
"""Mark of the place before the last jump."""


class RowMarks:
    """Letters and the numbers of their rows."""

    def __init__(self) -> None:
        self._rows: dict[str, int] = {}

    def set(self, letter: str, row: int) -> None:
        """Mark a row; the same letter on the same row removes the mark."""
        if letter != LAST and self._rows.get(letter) == row:
            del self._rows[letter]
        else:
            self._rows[letter] = row

    def row(self, letter: str) -> int | None:
        """Return the row of a mark."""
        return self._rows.get(letter)

    def letters(self) -> dict[str, int]:
        """Return all marks."""
        return {letter: row for letter, row in self._rows.items() if letter != LAST}

    def sign(self, row: int) -> str:
        """Return the letter of a row; empty without a mark."""
        return next((each for each, marked in self.letters().items() if marked == row), "")
