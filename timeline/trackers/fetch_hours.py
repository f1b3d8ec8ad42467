"""Fetched data of clients by hour: empty responses, long polls, lag."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from timeline.events.event import Event
from timeline.events.fetch_counts import FetchCounts, Lag
from timeline.events.words import counted, duration
from timeline.trackers.client_hours import ClientHours, Hour
from timeline.trackers.tracker import ObservedAt, Tracker

MAX_PARTITIONS = 10_000
"""Maximum number of partitions per client with a retained lag."""


@dataclass(slots=True)
class FetchHour(Hour):
    """Fetch exchanges of a client within an hour."""

    empty: int = 0
    empty_ns: int = 0
    lag: dict[tuple[str, int], int] = field(default_factory=dict)
    most: int = -1
    most_packet: int = 0
    most_place: tuple[str, int] = ("", 0)


class FetchHours(ClientHours[FetchHour]):
    """The current hour of each client, for one tracker."""

    def __init__(self, tracker: Tracker) -> None:
        super().__init__(tracker, "fetches", FetchHour)

    def add(self, counts: FetchCounts, observed_at: ObservedAt) -> Iterator[Event]:
        """Add counts of a connection; yield the client's completed hour."""
        first, last = observed_at(counts.first_row), observed_at(counts.last_row)
        state = yield from self._enter(counts.hour, first, last)
        state.count += counts.count
        state.empty += counts.empty
        state.empty_ns += counts.empty_ns
        for lag in counts.lags:
            self._add_lag(state, lag, observed_at)

    def _add_lag(self, state: FetchHour, lag: Lag, observed_at: ObservedAt) -> None:
        """Add the lag of a partition after a Fetch with records."""
        most = observed_at(lag.most_row)
        topic = lag.topic if isinstance(lag.topic, str) else most.exchange.known_topic(lag.topic)
        place = topic or str(lag.topic), lag.partition
        if place in state.lag or len(state.lag) < MAX_PARTITIONS:
            state.lag[place] = lag.last
        packet = most.evidence.first_packet
        if (lag.most, -packet) > (state.most, -state.most_packet):
            state.most_packet = packet
            state.most, state.most_place = lag.most, place
            state.proof["most"] = most.evidence

    def _text(self, state: FetchHour) -> str:
        took = duration(state.end_ns - state.time_ns)
        fetches = counted(state.count, "fetch", "fetches")
        text = f"{fetches} in {took}, {state.empty} without records"
        if state.empty:
            text += f", which waited {duration(state.empty_ns)} in all"
        if state.most >= 0:
            topic, partition = state.most_place
            text += (
                f"; lag at most {state.most} ({topic} {partition}), "
                f"{sum(state.lag.values())} in all partitions at the end"
            )
        return text
