"""The ways of chosen records: produced, fetched, replicated, committed by groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

from timeline.events.event import Event
from timeline.events.followed_records import FollowedRecord
from timeline.events.observed_exchange import ObservedExchange, is_follower
from timeline.events.states import Fresh, States
from timeline.events.words import client_name, duration
from timeline.trackers.tracker import ObservedAt, Tracker

OFFSET_COMMIT, TXN_OFFSET_COMMIT = 8, 28

MAX_OFFSETS = 1_000
"""Maximum number of records of a partition whose further way is known."""

Place: TypeAlias = tuple[str, int]


@dataclass(slots=True)
class _Way:
    """What is known of a record: when it was produced, by whom it was fetched and committed."""

    key: str = ""
    produced_ns: int | None = None
    fetched: set[str] = field(default_factory=set)
    groups: set[str] = field(default_factory=set)


class FollowedWays(Tracker):
    """Follows chosen records; the subject of an event is the key."""

    kind: ClassVar[str] = "record"
    apis: ClassVar[frozenset[int]] = frozenset((OFFSET_COMMIT, TXN_OFFSET_COMMIT))

    def __init__(self) -> None:
        self._ways: States[Place, States[int, _Way]] = States(Fresh(_new_partition))
        self._commits: list[ObservedExchange] = []

    def observe(self, observed: ObservedExchange) -> Iterator[Event]:
        """Keep a commit until the records of its window are known."""
        self._commits.append(observed)
        yield from ()

    def observe_records(
        self, records: Sequence[FollowedRecord], observed_at: ObservedAt
    ) -> Iterator[Event]:
        """Process the chosen records of a window, and its commits, in the order of their times."""
        carriers: dict[int, ObservedExchange] = {}
        steps: list[tuple[int, int, FollowedRecord | None, ObservedExchange]] = []
        for record in records:
            observed = carriers.get(record.row) or observed_at(record.row)
            carriers[record.row] = observed
            # A record may be fetched before the response to its producer arrives.
            time_ns = observed.time_ns if record.is_produced else observed.end_ns
            steps.append((time_ns, len(steps), record, observed))
        for observed in self._commits:
            steps.append((observed.end_ns, len(steps), None, observed))
        self._commits = []
        for _, _, chosen, observed in sorted(steps, key=lambda step: step[:2]):
            if chosen is None:
                yield from self._committed(observed)
            elif chosen.is_produced:
                yield self._produced(chosen, observed)
            else:
                yield self._fetched(chosen, observed)

    def _way(self, record: FollowedRecord, offset: int) -> _Way:
        way = self._ways.use((record.topic, record.partition)).use(offset)
        way.key = record.key
        return way

    def _produced(self, record: FollowedRecord, observed: ObservedExchange) -> Event:
        place = f"{record.topic} {record.partition}"
        name, cause, took = "produced", "", duration(observed.end_ns - observed.time_ns)
        if record.error:
            name, cause, result = "not produced", record.error, f"refused after {took}"
        elif record.offset is not None:
            result = f"offset {record.offset}, acknowledged after {took}"
            self._way(record, record.offset).produced_ns = observed.time_ns
        elif observed.status == "no_response":
            result = "without a response, as acks=0"
        else:
            cause, result = "no response", "no response in the capture"
        what = "tombstone" if record.is_tombstone else "record"
        by = client_name(observed.client_id, observed.client)
        text = f"{what} to {place} by {by}: {result}"
        return self.instant(observed, record.key or place, name, text, cause=cause)

    def _fetched(self, record: FollowedRecord, observed: ObservedExchange) -> Event:
        place = f"{record.topic} {record.partition}"
        by, after = client_name(observed.client_id, observed.client), ""
        request = observed.request
        name = "replicated" if request is not None and is_follower(request) else "fetched"
        if record.offset is not None:
            way = self._way(record, record.offset)
            if way.produced_ns is not None:
                after = f", {duration(observed.end_ns - way.produced_ns)} after it was produced"
            if by in way.fetched:
                name = f"{name} again"
            way.fetched.add(by)
        what = "tombstone" if record.is_tombstone else "record"
        text = f"{what} of {place}, offset {record.offset}, by {by}{after}"
        return self.event(
            record.key or place,
            name,
            text,
            time_ns=observed.end_ns,
            end_ns=observed.end_ns,
            proof=[observed.evidence],
            brokers=(),
        )

    def _committed(self, observed: ObservedExchange) -> Iterator[Event]:
        """Yield an event for each known record that a group commits as processed."""
        if observed.request is None or observed.response is None:
            return
        group = observed.request.group_id
        for place, offset in _accepted(observed):
            for at, way in (self._ways.get(place) or {}).items():
                if at >= offset or group in way.groups:
                    continue
                way.groups.add(group)
                after = ""
                if way.produced_ns is not None:
                    after = f", {duration(observed.end_ns - way.produced_ns)} after it was produced"
                where = f"{place[0]} {place[1]}"
                text = f"group {group} committed offset {offset} of {where}, behind {at}{after}"
                yield self.instant(observed, way.key or where, "committed", text)


def _new_partition() -> States[int, _Way]:
    return States(Fresh(_Way), MAX_OFFSETS)


def _accepted(observed: ObservedExchange) -> Iterator[tuple[Place, int]]:
    """Yield the partitions of a commit that were accepted, with the committed offsets."""
    refused = {
        (observed.topic(topic), partition.partition_index)
        for topic in observed.response.topics or ()
        for partition in topic.partitions or ()
        if partition.error_code
    }
    for topic in observed.request.topics or ():
        for partition in topic.partitions or ():
            place = observed.topic(topic), partition.partition_index
            if place not in refused:
                yield place, partition.committed_offset
