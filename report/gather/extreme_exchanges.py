"""The slowest and the largest exchanges of a capture."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dissector.engine.tables.column_types import Columns, Integers, Milliseconds, row_dict
from dissector.engine.tables.exchange_table import NONE, Ints
from dissector.summary.group_totals import per_value


class ExtremeExchanges:
    """Exchanges with the highest values, as rows of `pairs`; the first of equal ones."""

    def __init__(self, most: int, value_of: Callable[[Columns], Ints]) -> None:
        """
        Start.

        Args:
            most: Number of exchanges.
            value_of: Returns the value of each exchange; negative for excluded ones.
        """
        self._most = most
        self._value_of = value_of
        self._found: list[tuple[int, dict[str, Any]]] = []

    def add(self, columns: Columns) -> None:
        """Add columns of `pairs`, in order."""
        values = self._value_of(columns)
        floor = self._found[-1][0] if len(self._found) == self._most else -1
        rows = np.flatnonzero(values > floor)
        rows = rows[np.argsort(-values[rows], kind="stable")[: self._most]]
        found = [(int(values[row]), row_dict(columns, row)) for row in rows.tolist()]
        ordered = sorted([*self._found, *found], key=lambda each: -each[0])
        self._found = ordered[: self._most]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Rows in descending order of values."""
        return [row for _, row in self._found]


def latency_ns(columns: Columns) -> Ints:
    """Return the latency of each exchange; negative without one."""
    latency = columns["latency_ms"]
    assert isinstance(latency, Milliseconds)
    return latency.values_ns


def failures(columns: Columns) -> Ints:
    """Return 1 for each exchange with errors; negative for others."""
    found: Ints = np.where(per_value(columns["errors"], bool) > 0, 1, -1)
    return found


def total_bytes(columns: Columns) -> Ints:
    """Return the bytes of request and response of each exchange."""
    sides = []
    for name in ("request_bytes", "response_bytes"):
        column = columns[name]
        assert isinstance(column, Integers)
        sides.append(np.where(column.values == NONE, 0, column.values))
    total: Ints = sides[0] + sides[1]
    return total
