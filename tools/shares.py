"""
Shares of the tests: what takes too long for each commit runs within a week of daily commits.

A test belongs to one of seven shares, by its name. The date of a commit chooses one of them; seven
days in a row choose all.
"""

from __future__ import annotations

import re
import subprocess
import zlib
from datetime import date
from pathlib import Path
from typing import NamedTuple

PARTS = 7


class Share(NamedTuple):
    """One of several equal parts of the tests; written 3/7, from 1/7 to 7/7."""

    number: int
    parts: int

    @classmethod
    def parsed(cls, text: str) -> Share:
        """Return the share written so; raises ValueError for other texts."""
        found = re.fullmatch(r"([1-9]\d*)/([1-9]\d*)", text)
        share = cls(*map(int, found.groups())) if found else None
        if share is None or share.number > share.parts:
            raise ValueError(f"{text!r} is no share of the tests; write 3/7 for the third of seven")
        return share

    def __str__(self) -> str:
        return f"{self.number}/{self.parts}"

    def has(self, name: str) -> bool:
        """Return whether a test belongs to this share, the same on every machine."""
        return zlib.crc32(name.encode()) % self.parts == self.number - 1


def of_day(day: date) -> Share:
    """Return the share of a day."""
    return Share(day.toordinal() % PARTS + 1, PARTS)


def of_commit(folder: Path) -> Share:
    """Return the share of the checked-out commit, by its date; outside of a checkout the first."""
    words = ["git", "-C", str(folder), "log", "-1", "--format=%cs"]
    try:
        shown = subprocess.run(words, capture_output=True, text=True)
    except FileNotFoundError:
        return Share(1, PARTS)
    return of_day(date.fromisoformat(shown.stdout.strip())) if shown.stdout else Share(1, PARTS)
