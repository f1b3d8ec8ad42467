"""Stable numbers of connections, while a reading drops and renumbers some."""

from __future__ import annotations

import numpy as np

from dissector.engine.tables.exchange_table import Ints


class ConnectionNumbering:
    """
    Numbers connections in order of their begin.

    A reading counts only connections it follows: retained ones, then new ones.
    """

    def __init__(self) -> None:
        self._retained: Ints = np.zeros(0, np.int64)
        self._next = 0

    def of(self, position: int) -> int:
        """Return the number of a connection, given its position in the reading."""
        new = position - len(self._retained)
        return self._next + new if new >= 0 else int(self._retained[position])

    def retain(self, stay: Ints, count: int) -> None:
        """Follow a reading that retains some of its `count` connections, in order."""
        numbers = np.array([self.of(each) for each in stay.tolist()], np.int64)
        self._next += count - len(self._retained)
        self._retained = numbers
