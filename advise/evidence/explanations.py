"""
What the timeline says of a part of the traffic: why groups rebalance, which requests hang.

A timeline of all traffic costs several times what the totals cost. So it is given the exchanges of
groups that were seen to rebalance often, and requests without an answer, and no others.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dissector.engine.tables.exchange_table import UNANSWERED, Ints
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from dissector.engine.reading.capture import Capture, Window
    from timeline.events.event import Event

_MAX_EXCHANGES = 4_000
"""Exchanges that are explained; a loop repeats its reasons."""

_MAX_EVENTS = 1_000


class Explanations:
    """
    Events of chosen exchanges.

    Attributes:
        reasons: Group -> causes of its rebalances, with their numbers.
        hung: Events of requests without an answer.
    """

    def __init__(self, capture: Capture) -> None:
        self.reasons: dict[str, Counter[str]] = {}
        self.hung: list[Event] = []
        self._capture = capture
        self._timeline: Timeline | None = None
        self._left = _MAX_EXCHANGES

    def add(self, window: Window, of_groups: Ints) -> None:
        """Add some exchanges of a window, and its requests without an answer."""
        is_hanging = window.exchanges.status == UNANSWERED
        rows = np.union1d(of_groups, np.flatnonzero(is_hanging))[: self._left]
        if self._timeline is None and not len(rows):
            return
        if self._timeline is None:
            self._timeline = Timeline(self._capture, ("group", "connection"))
        self._left -= len(rows)
        part = replace(window, exchanges=window.exchanges.rows(rows), summary=None)
        for event in self._timeline.advance(part):
            self._keep(event)

    def finish(self) -> None:
        """End: requests still without an answer hang."""
        if self._timeline is not None:
            for event in self._timeline.finish():
                self._keep(event)

    def _keep(self, event: Event) -> None:
        if event.event == "rebalance":
            self.reasons.setdefault(event.subject, Counter())[event.cause] += event.count
        elif event.event == "unanswered" and len(self.hung) < _MAX_EVENTS:
            self.hung.append(event)
