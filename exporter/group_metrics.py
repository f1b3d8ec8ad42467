"""Metrics of groups: rebalances, and the lag by topic."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from dissector.engine.fields.window_query import WindowQuery
from dissector.engine.reading.capture import Capture, Window
from dissector.engine.tables.exchange_table import NONE
from dissector.engine.tables.polars_tables import escape_invalid_utf8
from dissector.summary.group_events import Generation
from dissector.summary.group_lag import GroupLags
from dissector.summary.group_messages import GROUP_APIS, OFFSET_APIS, group_events
from dissector.summary.repeated_heartbeats import RepeatedHeartbeats
from exporter.metric_families import LAG, REBALANCES
from exporter.metric_series import FamilySamples, LabelRows, Sample, Series, label_text, merged

if TYPE_CHECKING:
    from dissector.filter import Filter

MAX_GROUPS = 100_000
"""Maximum number of groups with a known generation; the longest known one is forgotten."""

_MEMBERSHIP_APIS = list(GROUP_APIS - OFFSET_APIS)


class GroupMetrics:
    """
    Reads groups window by window; the figures are those of `groups`.

    Args:
        capture: The capture.
        most: Maximum number of series of a family, beside the one of all others.
        chosen: Passes the messages of groups that count; None for all.
    """

    def __init__(self, capture: Capture, most: int, chosen: Filter | None = None) -> None:
        self._capture = capture
        self._most = most
        self._chosen = chosen
        self._lags = GroupLags()
        self._lag_of: dict[int, int] = {}
        self._repeated = RepeatedHeartbeats()
        self._generations: dict[str, int] = {}
        self._labels = LabelRows(1, most)
        self._rebalances = Series(REBALANCES)

    def add(self, window: Window) -> None:
        """Read a window; windows must be passed in order."""
        table, reading, names = window.exchanges, self._capture.reading, self._capture.names
        if not len(table):
            return
        assert reading is not None
        self._capture.known_of(window)  # learns names of topic ids
        rows = None
        if self._chosen is not None:
            rows = self._chosen.passing(WindowQuery(self._capture, window))
        points = self._lags.read(
            table, lambda row: reading.exchange(table, row, names), names.name, rows
        )
        self._lag_of.update(zip(points.place.tolist(), points.lag.tolist(), strict=True))
        members = np.flatnonzero(np.isin(table.api_key, _MEMBERSHIP_APIS))
        if rows is not None:
            members = np.intersect1d(members, rows, assume_unique=True)
        for row in members.tolist():
            if not self._repeated.is_repeated(table, row):
                for event in group_events(reading.exchange(table, row, names)):
                    if isinstance(event, Generation) and event.number is not None:
                        self._count(event.group_id, event.number)

    def samples(self) -> Iterator[FamilySamples]:
        """Yield all series."""
        yield FamilySamples(REBALANCES, self._rebalances.samples(self._labels.labels))
        labels = LabelRows(2, self._most)
        by_topic = [
            Sample(
                labels.labels[labels.row_of((escape_invalid_utf8(each.group), each.topic))], (lag,)
            )
            for number, lag in sorted(self._lag_of.items())
            if lag != NONE
            for each in (self._lags.places[number],)
        ]
        yield FamilySamples(LAG, merged(by_topic, lambda label: label))

    def _count(self, group: str, generation: int) -> None:
        """Take the generation of a group; an older one is that of a late message."""
        known = self._generations.get(group)
        if known is None and len(self._generations) >= MAX_GROUPS:
            del self._generations[next(iter(self._generations))]
        if known is None or generation > known:
            self._generations[group] = generation
        if known is not None and generation > known:
            row = self._labels.row_of((label_text(escape_invalid_utf8(group)),))
            self._rebalances.count(np.array([row]))
