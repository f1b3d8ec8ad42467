"""Produced data of clients by hour: requests, acks=0, number in flight."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dissector.engine.tables.exchange_table import Ints
from timeline.events.event import Event
from timeline.events.produce_counts import ProduceCounts
from timeline.events.states import Fresh, States
from timeline.events.words import counted, duration
from timeline.trackers.client_hours import ClientHours, Hour
from timeline.trackers.tracker import ObservedAt, Tracker

MAX_IN_FLIGHT = 1_000
"""Maximum number of requests per connection with a retained time, to count those in flight."""


@dataclass(slots=True)
class ProduceHour(Hour):
    """Produce requests of a client within an hour."""

    unacknowledged: int = 0
    most: int = 0
    most_packet: int = 0


class ProduceHours(ClientHours[ProduceHour]):
    """The current hour of each client, for one tracker."""

    def __init__(self, tracker: Tracker) -> None:
        super().__init__(tracker, "produces", ProduceHour)
        self._ends: States[int, list[int]] = States(Fresh(list))

    def add(self, counts: ProduceCounts, observed_at: ObservedAt) -> Iterator[Event]:
        """Add counts of a connection; yield the client's completed hour."""
        first, last = observed_at(counts.first_row), observed_at(counts.last_row)
        state = yield from self._enter(counts.hour, first, last)
        state.count += counts.unacknowledged + len(counts.answered)
        state.unacknowledged += counts.unacknowledged
        if len(counts.answered):
            in_flight = self._in_flight(first.connection, counts.begin_ns, counts.end_ns)
            at = int(np.argmax(in_flight))
            most = observed_at(int(counts.answered[at])).evidence
            packet = most.first_packet
            if (int(in_flight[at]), -packet) > (state.most, -state.most_packet):
                state.most, state.most_packet = int(in_flight[at]), packet
                state.proof["most"] = most

    def _in_flight(self, connection: int, begin_ns: Ints, end_ns: Ints) -> Ints:
        """
        Return the number of requests in flight when each request was sent, including itself.

        Brokers answer in order of requests: earlier requests still unanswered at that time are
            answered before it.
        """
        before = self._ends.use(connection)
        ends = np.maximum.accumulate(np.concatenate((np.array(before, np.int64), end_ns)))
        self._ends.put(connection, ends[-MAX_IN_FLIGHT:].tolist())
        place = np.arange(len(before), len(ends))
        in_flight: Ints = 1 + np.maximum(0, place - np.searchsorted(ends, begin_ns, side="right"))
        return in_flight

    def _text(self, state: ProduceHour) -> str:
        text = f"{counted(state.count, 'request')} in {duration(state.end_ns - state.time_ns)}"
        if state.unacknowledged:
            text += f", {state.unacknowledged} with acks=0"
        if state.most:
            text += f"; at most {state.most} in flight on a connection"
        return text
