"""
Lag of groups by hour: the highest, the last, by partition, and since when there is one.

It is the lag of `kafkashark groups`: the high watermark less the committed offset. Where a client
fetches is no lag, as clients fetch ahead of what they have processed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from dissector.engine.tables.column_types import distinct
from dissector.engine.tables.exchange_table import NONE, Exchanges, Ints
from dissector.summary.group_lag import GroupLags, LagPoints, Place
from timeline.events.event import Event
from timeline.events.fetch_counts import FETCH, HOUR_NS
from timeline.events.observed_exchange import ObservedExchange
from timeline.events.states import Fresh, States
from timeline.events.words import duration, listed
from timeline.trackers.client_hours import ClientHours, Hour
from timeline.trackers.tracker import ObservedAt, Tracker

MAX_PARTITIONS = 10_000
"""Maximum number of partitions per group with a named lag."""


@dataclass(slots=True)
class LagHour(Hour):
    """The lag of a group within an hour."""

    most: int = -1
    last: int = 0
    since_ns: int | None = None
    until_ns: int = 0
    lags: dict[Place, int] = field(default_factory=dict)


class GroupLagHistory(Tracker):
    """Follows the lag of all groups with committed offsets."""

    kind: ClassVar[str] = "group"
    follows_lags: ClassVar[bool] = True

    def __init__(self) -> None:
        self._lags = GroupLags()
        self._hours = LagHours(self, self._lags)

    def observe(self, observed: ObservedExchange) -> Iterator[Event]:
        """Ignore single exchanges."""
        yield from ()

    def observe_offsets(
        self, table: Exchanges, name: Callable[[str | UUID], str], observed_at: ObservedAt
    ) -> Iterator[Event]:
        """Process the changes of lag in a window."""
        points = self._lags.read(table, lambda row: observed_at(row).exchange, name)
        yield from self._hours.add(points, table.api_key[points.row] != FETCH, observed_at)

    def finish(self, now_ns: int) -> Iterator[Event]:
        """Report the hours open at the end of the capture."""
        self._hours.lasts_until(now_ns)
        yield from self._hours.finish()

    def open_since_ns(self) -> int | None:
        """Return the begin of the oldest hour."""
        return self._hours.open_since_ns()


class LagHours(ClientHours[LagHour]):
    """The current hour of each group, for one tracker."""

    def __init__(self, tracker: Tracker, lags: GroupLags) -> None:
        super().__init__(tracker, "lag", LagHour)
        self._places = lags.places
        self._since: States[str, int | None] = States(Fresh(type(None)))
        self._lags: States[str, dict[int, int]] = States(Fresh(dict))

    def add(
        self, points: LagPoints, is_commit: NDArray[np.bool_], observed_at: ObservedAt
    ) -> Iterator[Event]:
        """
        Add the changes in a window; yield completed hours.

        Args:
            points: The changes.
            is_commit: Whether an exchange of the group shows each; else a Fetch of any client.
            observed_at: Returns an exchange.
        """
        if not len(points.place):
            return
        numbers: dict[str, int] = {}
        of_place = [numbers.setdefault(each.group, len(numbers)) for each in self._places]
        group = np.array(of_place, np.int64)[points.place]
        keys = np.stack((points.time_ns // HOUR_NS, group), axis=1)
        names = list(numbers)
        found, key = np.unique(keys, axis=0, return_inverse=True)
        order = np.argsort(key.ravel(), kind="stable")
        bounds = np.searchsorted(key.ravel()[order], np.arange(1, len(found)))
        for (hour, number), at in zip(found.tolist(), np.split(order, bounds), strict=True):
            yield from self._add(names[number], hour, at, points, observed_at)
            for last in at[is_commit[at]][-1:].tolist():
                evidence = observed_at(int(points.row[last])).evidence
                self._hours[names[number]].proof["commit"] = evidence

    def lasts_until(self, time_ns: int) -> None:
        """Let the lag of all groups last until a time."""
        for state in self._hours.values():
            state.until_ns = time_ns

    def _add(
        self,
        group: str,
        hour: int,
        at: Ints,
        points: LagPoints,
        observed_at: ObservedAt,
    ) -> Iterator[Event]:
        """Add the changes of a group within an hour."""
        first, last = (observed_at(int(points.row[each])) for each in (at[0], at[-1]))
        if hour > self._newest:
            self.lasts_until(first.time_ns)
        state = yield from self._enter(hour, first, last, group)
        total = points.total[at]
        state.count += len(at)
        state.last = int(total[-1])
        highest = int(total.argmax())
        if total[highest] > state.most:
            state.most = int(total[highest])
            state.proof["most"] = observed_at(int(points.row[at[highest]])).evidence
        begin = self._begin_of_lag(group, total, points.time_ns[at])
        state.since_ns = self._since.get(group)
        if begin is not None:
            state.proof["since"] = observed_at(int(points.row[at[begin]])).evidence
        self._add_places(group, points.place[at], points.lag[at])

    def _add_places(self, group: str, place: Ints, lag: Ints) -> None:
        """Keep the last lag of each partition of a group."""
        lags = self._lags.use(group)
        codes, numbers = distinct(place)
        last = np.zeros(len(numbers), np.int64)
        last[codes] = lag  # of several values for one place numpy assigns the last
        for number, behind in zip(numbers.tolist(), last.tolist(), strict=True):
            if number in lags or len(lags) < MAX_PARTITIONS:
                lags[number] = behind

    def _begin_of_lag(self, group: str, total: Ints, time_ns: Ints) -> int | None:
        """Follow since when a group has a lag; return which of the changes began it, if any."""
        zeros = np.flatnonzero(total <= 0)
        begin = int(zeros[-1]) + 1 if len(zeros) else 0
        if begin == len(total):
            self._since.put(group, None)
            return None
        if not len(zeros) and self._since.get(group) is not None:
            return None
        self._since.put(group, int(time_ns[begin]))
        return begin

    def _event(self, client: str, state: LagHour, *, certain: bool) -> Event:
        """Return the event of an hour, with the lag of each partition at its end."""
        lags = self._lags.get(client, {})
        known = {each: lag for each, lag in lags.items() if lag not in (0, NONE)}
        state.lags = {self._places[each]: lag for each, lag in known.items()}
        return super()._event(client, state, certain=certain)

    def _text(self, state: LagHour) -> str:
        text = f"lag at most {state.most} in all partitions, {state.last} at the end"
        if state.last:
            ordered = sorted(state.lags.items(), key=lambda each: (-each[1], each[0]))
            text += (
                f": {listed(f'{place.topic} {place.partition}: {lag}' for place, lag in ordered)}"
            )
        if state.since_ns is not None:
            text += f"; above 0 for {duration(state.until_ns - state.since_ns)}"
        return text
