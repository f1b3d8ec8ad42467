"""Names as numbers, so that totals have columns of integers only."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

import numpy as np

from dissector.engine.tables.exchange_table import Ints

Name = TypeVar("Name", bound=Hashable)

MAX_NAMES = 100_000
"""Maximum number of names of a kind; further ones share a number, so that memory is bounded."""


class InternedNames(Generic[Name]):
    """
    Numbers of names, in the order of their first use.

    Attributes:
        names: The names by number.
        overflow: Number of further names, which share the number `MAX_NAMES`.
    """

    def __init__(self, other: Name) -> None:
        """Begin; `other` stands for all names beyond the limit."""
        self.names: list[Name] = []
        self.overflow = 0
        self._numbers: dict[Name, int] = {}
        self._other = other

    def number(self, name: Name) -> int:
        """Return the number of a name."""
        found = self._numbers.get(name)
        if found is None:
            if len(self.names) >= MAX_NAMES:
                self.overflow += 1
                return MAX_NAMES
            found = self._numbers[name] = len(self.names)
            self.names.append(name)
        return found

    def numbers(self, names: Iterable[Name]) -> Ints:
        """Return the numbers of names."""
        return np.array([self.number(name) for name in names], np.int64)

    def name(self, number: int) -> Name:
        """Return the name of a number."""
        return self.names[number] if 0 <= number < len(self.names) else self._other
