"""Marks of rows: a letter each, to return to."""

from __future__ import annotations

LAST = "'"
"""The mark of the place before the last jump."""


class RowMarks:
    """Letters, and the numbers of the rows that they mark."""

    def __init__(self) -> None:
        self._rows: dict[str, int] = {}

    def set(self, letter: str, row: int) -> None:
        """Mark a row; a letter marks one row, and a second time none."""
        if letter != LAST and self._rows.get(letter) == row:
            del self._rows[letter]
        else:
            self._rows[letter] = row

    def row(self, letter: str) -> int | None:
        """Return the row that a letter marks."""
        return self._rows.get(letter)

    def letters(self) -> dict[str, int]:
        """Return all marks."""
        return {letter: row for letter, row in self._rows.items() if letter != LAST}

    def sign(self, row: int) -> str:
        """Return the letter of a marked row; empty for others."""
        return next((each for each, marked in self.letters().items() if marked == row), "")
