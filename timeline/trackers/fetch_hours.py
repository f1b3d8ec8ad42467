"""Fetched data of clients by hour: empty responses, long polls, positions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from timeline.events.event import Event
from timeline.events.fetch_counts import FetchCounts, Position
from timeline.events.words import counted, duration
from timeline.trackers.client_hours import ClientHours, Hour
from timeline.trackers.tracker import ObservedAt, Tracker

MAX_PARTITIONS = 10_000
"""Maximum number of partitions per client with a retained position."""


@dataclass(slots=True)
class FetchHour(Hour):
    """Fetch exchanges of a client within an hour."""

    empty: int = 0
    empty_ns: int = 0
    behind: dict[tuple[str, int], int] = field(default_factory=dict)
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
        for position in counts.positions:
            self._add_position(state, position, observed_at)

    def _add_position(self, state: FetchHour, position: Position, observed_at: ObservedAt) -> None:
        """Add the position in a partition after a Fetch with records."""
        most = observed_at(position.most_row)
        topic: str | None
        if isinstance(position.topic, str):
            topic = position.topic
        else:
            topic = most.known_topic(position.topic)
        place = topic or str(position.topic), position.partition
        if place in state.behind or len(state.behind) < MAX_PARTITIONS:
            state.behind[place] = position.last
        packet = most.evidence.first_packet
        if (position.most, -packet) > (state.most, -state.most_packet):
            state.most_packet = packet
            state.most, state.most_place = position.most, place
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
                f"; fetch position at most {state.most} records behind ({topic} {partition}), "
                f"{sum(state.behind.values())} in all partitions at the end"
            )
        return text
