"""
What the timeline says of a part of the traffic: why groups rebalance.

A timeline of all traffic costs several times what the totals cost. So it is given the exchanges of
groups that were seen to rebalance often, and no others.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from dissector.engine.tables.exchange_table import Ints

if TYPE_CHECKING:
    from dissector.engine.reading.capture import Capture, Window
    from timeline.events.event import Event
    from timeline.timeline import Timeline

_MAX_EXCHANGES = 4_000
"""Exchanges that are explained; a loop repeats its reasons."""


class Explanations:
    """
    Events of chosen groups.

    Attributes:
        reasons: Group -> causes of its rebalances, with their numbers.
    """

    def __init__(self, capture: Capture) -> None:
        self.reasons: dict[str, Counter[str]] = {}
        self._capture = capture
        self._timeline: Timeline | None = None
        self._left = _MAX_EXCHANGES

    def add(self, window: Window, rows: Ints) -> None:
        """Add some exchanges of a window."""
        rows = rows[: self._left]
        if not len(rows):
            return
        if self._timeline is None:
            from timeline.timeline import Timeline

            self._timeline = Timeline(self._capture, ("group",))
        self._left -= len(rows)
        part = replace(window, exchanges=window.exchanges.rows(rows), summary=None)
        for event in self._timeline.advance(part):
            self._keep(event)

    def finish(self) -> None:
        """End."""
        if self._timeline is not None:
            for event in self._timeline.finish():
                self._keep(event)

    def _keep(self, event: Event) -> None:
        if event.event == "rebalance":
            self.reasons.setdefault(event.subject, Counter())[event.cause] += event.count
