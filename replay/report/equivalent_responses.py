"""Equivalent responses with their reasons; the end of a pass may revise and remove some."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from itertools import islice

from replay.model.outcome import Reason
from replay.model.row import Row
from replay.report.counters import ReasonCounter
from replay.report.row_spill import RowSpill


class EquivalentResponses:
    """
    Collects equivalent responses, and their reasons by step for the current pass of each copy.

    Args:
        copies: The number of copies of the capture.

    Attributes:
        reasons: The count of each reason.
    """

    def __init__(self, copies: int = 1) -> None:
        self.reasons = ReasonCounter()
        self._rows = RowSpill()
        self._kinds: list[frozenset[Reason]] = []
        self._kinds_of = [array("H") for _ in range(copies)]
        self._revised: set[tuple[int, int]] = set()

    def add(self, request: Row, reasons: frozenset[Reason]) -> None:
        """Add an equivalent response, by the report row of its request."""
        for reason in reasons:
            self.reasons.add(reason, request["api"])
        self._rows.add({**request, "reasons": sorted(reasons)})
        if reasons not in self._kinds:
            self._kinds.append(reasons)
        step, kind_of = request["step"], self._kind_of(request)
        kind_of.extend([0] * (step + 1 - len(kind_of)))
        kind_of[step] = self._kinds.index(reasons)

    def remove(self, request: Row) -> None:
        """Remove a response of the current pass, as it differs after all."""
        for reason in self._kinds[self._kind_of(request)[request["step"]]]:
            self.reasons.remove(reason, request["api"])
        self._revised.add((request["pass"], request["step"]))

    def _kind_of(self, request: Row) -> array[int]:
        number: int = request["pass"]
        return self._kinds_of[number % len(self._kinds_of)]

    def absorb(self, reasons: Iterable[Row], rows: Iterable[Row]) -> None:
        """Add the reasons and the rows of another report."""
        self.reasons.absorb(reasons)
        for row in rows:
            self._rows.add(row)

    def rows(self, limit: int | None = None) -> Iterator[Row]:
        """Yield the rows in the order of their addition, at most `limit`."""
        rows = self._rows.rows()
        return islice((r for r in rows if (r["pass"], r["step"]) not in self._revised), limit)
