"""The steps of a replay in capture order, with their dependencies."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import islice
from mmap import mmap
from typing import Any, Self
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from dissector.capture.columns import Int64s
from dissector.engine.exchanges.stored_exchanges import ExchangeSpill
from dissector.protocol.apis import KEYS
from replay.model.plan_source import Source
from replay.model.step import Step
from replay.order.group_order import GroupHistory
from replay.order.read_write_sets import Resource
from replay.order.topic_lives import EndedLife, deletion_of
from replay.plan.capture_part import CapturePart, order_within
from replay.plan.completeness import Completeness
from replay.plan.missing_prerequisites import MissingPrerequisites
from replay.plan.request_shapes import Shape
from replay.plan.sequence_gaps import ProducerPartition, SequenceGaps

_NO_OVERLAPS: dict[Resource, bool] = {}


class PlannedSteps:
    """
    The steps of a replay: a sequence of `Step`, each read on access.

    A plan for a part of a capture has the steps of that part, with their numbers in the whole.

    Attributes:
        part: The part; None for the whole capture.
        foreign: Resources that other parts change.
        left_out: Reason -> number of requests of the part that are left out.
        orphans: Number of responses without requests.
        filtered: Number of exchanges that the filter rejected.
        connections: The completeness of each captured connection of the part.
        topics: Topic -> number of partitions seen in the capture, at least 1.
        replicas: Topic -> partition -> the node ids of its replicas when it was first seen, the
            leader first.
        topic_ids: Captured topic ids and their names.
        assignments: Group and generation -> the step with the leader's assignment.
        created: Topics created automatically, because a request named them.
        given_topics: Topics that no captured request creates.
        absent_topics: Topics that do not exist before the capture creates them.
        ended_lives: The lives of topics that end with each step.
        groups: Group events seen in the capture.
        overlaps: Steps with responses that overlapped a change, and the changed resources.
        missing_prerequisites: The missing prerequisites of steps.
        brokers: `address:port` of captured brokers -> node id, from Metadata responses.
        connected: The same from the node ids in clients' requests (ApiVersions v5).
        cluster_id: The captured cluster's id, if Metadata or clients name it.
        problems: Problems in the files.
        unreadable: The reason for an empty plan, if the captures have TLS only; else empty.
        group_topics: Group -> topics whose offsets or records it commits or fetches: names or ids.
        holes: Gaps in the sequences of producers.
        sent_again: Steps with a batch that an earlier step sent too.
        source: The files, and the choices made for them.
        places_text: Returns the files of packets (from 1) with the numbers there; empty for one
            file.
        clients: Connection -> software of its client, if the client names it (KIP-511).
        shapes: Shapes shared by exchanges, by number.
        spill: The captured exchanges, in a temporary file.
        causes: The dependencies of all steps, concatenated.
        cause_ends: For each step the end of its dependencies in `causes`; begins with 0.
    """

    def __init__(self) -> None:
        self.part: CapturePart | None = None
        self.foreign: frozenset[Resource] = frozenset()
        self.left_out: Counter[str] = Counter()
        self.orphans = 0
        self.filtered = 0
        self.connections: dict[int, Completeness] = {}
        self.topics: dict[str, int] = {}
        self.replicas: dict[str, dict[int, list[int]]] = {}
        self.topic_ids: dict[UUID, str] = {}
        self.assignments: dict[tuple[str, int], int] = {}
        self.created: frozenset[str] = frozenset()
        self.given_topics: frozenset[str] = frozenset()
        self.absent_topics: frozenset[str] = frozenset()
        self.ended_lives: dict[int, list[EndedLife]] = {}
        self.groups = GroupHistory()
        self.overlaps: dict[int, dict[Resource, bool]] = {}
        self.missing_prerequisites = MissingPrerequisites()
        self.brokers: dict[str, int] = {}
        self.connected: dict[str, int] = {}
        self.cluster_id: str | None = None
        self.problems: list[str] = []
        self.unreadable = ""
        self.group_topics: dict[str, set[str | UUID]] = {}
        self.holes: dict[ProducerPartition, SequenceGaps] = {}
        self.sent_again: set[int] = set()
        self.source = Source()
        self.places_text: Callable[[Iterable[int]], str] = lambda packets: ""
        self.clients: dict[int, str] = {}
        self.shapes: list[Shape] = []
        self.spill = ExchangeSpill()
        self._exclusions: dict[int, str] = {}
        self.causes = array("i")
        self.cause_ends = array("q", [0])
        self._by_connection: dict[int, array[int]] = {}
        self._is_elsewhere = bytearray()

    def __len__(self) -> int:
        return self.size - self._is_elsewhere.count(1)

    def __iter__(self) -> Iterator[Step]:
        return map(self.step, self.numbers())

    @property
    def size(self) -> int:
        """The number of steps of all parts."""
        return len(self.spill)

    def numbers(self) -> Iterator[int]:
        """Yield the numbers of the steps."""
        if self.part is None:
            return iter(range(self.size))
        return (number for number in range(self.size) if not self._is_elsewhere[number])

    @property
    def node_ids(self) -> set[int]:
        """The node ids of captured brokers."""
        return {*self.brokers.values(), *self.connected.values()}

    @property
    def is_empty_part(self) -> bool:
        """Whether this part has nothing to send, but others have."""
        own = any(map(self.is_sent, self.numbers()))
        return not own and len(self._exclusions) < self.size

    def count_before(self, end: int) -> int:
        """Return the number of steps with lower numbers."""
        return end - self._is_elsewhere.count(1, 0, end)

    def elsewhere(self) -> bytearray:
        """Return for each step of all parts whether another process plays it."""
        return bytearray(self._is_elsewhere) if self.part is not None else bytearray(self.size)

    def choose_part(
        self, part: CapturePart, part_of: Mapping[int, int], foreign: frozenset[Resource]
    ) -> None:
        """
        Leave the connections of other parts to other processes.

        Args:
            part: The part.
            part_of: Connection -> its part, from 0.
            foreign: Resources that other parts change.
        """
        self.part = part
        connections = np.frombuffer(self.spill.columns["connection"], np.int32)
        own = [each for each in self._by_connection if part_of[each] == part.number - 1]
        self._is_elsewhere = bytearray(~np.isin(connections, own))
        self.foreign = foreign.union(self._deleted_elsewhere())
        self.ended_lives = self._ended_within()
        order = self.causes, self.cause_ends
        self.causes, self.cause_ends = order_within(
            connections.tolist(), self._is_elsewhere, *order
        )
        self._by_connection = {each: self._by_connection[each] for each in own}
        self.left_out = Counter(
            why for step, why in self._exclusions.items() if not self._is_elsewhere[step]
        )

    def _deleted_elsewhere(self) -> Iterator[Resource]:
        """Yield the topics that other parts delete."""
        keys = self.spill.columns["api_key"]
        for step, lives in self.ended_lives.items():
            is_deletion = keys[step] == KEYS["DeleteTopics"] and self.is_sent(step)
            if is_deletion and self._is_elsewhere[step]:
                yield from (deletion_of(life.topic) for life in lives)

    def _ended_within(self) -> dict[int, list[EndedLife]]:
        """
        Return the lives of topics that end with own steps.

        A life that ends with a step of another part ends here with the first own step that would
        have to wait for that one, if only through others.
        """
        found: dict[int, list[EndedLife]] = {}
        for step, lives in self.ended_lives.items():
            following, at = {step}, step
            while at < self.size and (at not in following or self._is_elsewhere[at]):
                at += 1
                if at < self.size and not following.isdisjoint(self.after(at)):
                    following.add(at)
            if at < self.size:
                found.setdefault(at, []).extend(lives)
        return found

    def step(self, number: int) -> Step:
        """Return a step, read again each time."""
        return Step(
            number,
            self.spill.get(number),
            tuple(self.after(number)),
            self._exclusions.get(number, ""),
            number in self.groups.before_rebalance,
            number in self.groups.before_assignment,
            self.missing_prerequisites.of(number),
            self.overlaps.get(number, _NO_OVERLAPS),
            number in self.sent_again,
        )

    def by_connection(self) -> Iterator[tuple[str, array[int], int]]:
        """Yield each captured connection's broker, steps, and the first step after its end."""
        for connection, numbers in self._by_connection.items():
            completeness = self.connections.get(connection)
            end = self.first_after(completeness.last_ns) if completeness else numbers[-1] + 1
            yield self.spill.endpoints[connection][1], numbers, end

    @cached_property
    def is_partial(self) -> bool:
        """Whether packets are missing: connections were open before the capture, or have gaps."""
        return any(each.is_partial for each in self.connections.values())

    @property
    def connection_numbers(self) -> list[int]:
        """The captured connections with steps of the part."""
        return list(self._by_connection)

    @property
    def begin_ns(self) -> int:
        """The time of the first captured request; 0 without one."""
        return self.times_ns(0)[0] if self.size else 0

    def end_of(self, limit: int | None) -> int:
        """Return the number after the last step if at most `limit` steps are sent."""
        if limit is None:
            return self.size
        sent = (number for number in self.numbers() if number not in self._exclusions)
        return next(islice(sent, limit, None), self.size)

    @property
    def shape_of(self) -> array[int]:
        """For each step the number of its shape, or `PLAIN_FETCH`; -1 without one."""
        return self.spill.columns["shape"]

    @property
    def request_times_ns(self) -> array[int]:
        """For each step the capture time of its request."""
        return self.spill.columns["request_time_ns"]

    def first_after(self, time_ns: int) -> int:
        """
        Return the number of the first step captured after a time.

        About: the few steps that were served later than their turn are not in order of time.
        """
        return bisect_right(self.request_times_ns, time_ns)

    def after(self, number: int) -> array[int]:
        """Return the numbers of the steps that must be answered before a step is sent."""
        return self.causes[self.cause_ends[number] : self.cause_ends[number + 1]]

    @cached_property
    def awaited_without_response(self) -> frozenset[int]:
        """The steps without a response that others depend on: Produce with acks = 0."""
        (is_due,) = self.columns("is_due")
        causes = np.frombuffer(self.causes, np.int32)
        return frozenset(map(int, causes[is_due[causes] == 0]))

    def request_at(self, number: int) -> tuple[int, int]:
        """Return the captured connection and the capture time of a step's request."""
        return self.spill.connection(number), self.spill.times_ns(number)[0]

    def latencies_ns(self, numbers: Int64s) -> Int64s:
        """Return the captured latencies of steps that all have responses."""
        begun_ns, done_ns = self.columns("request_time_ns", "response_time_ns")
        latencies: Int64s = done_ns[numbers] - begun_ns[numbers]
        return latencies

    def columns(self, *names: str) -> tuple[NDArray[Any], ...]:
        """Return columns over all steps, by their names in the spool."""
        columns = (self.spill.columns[name] for name in names)
        # array's type codes would give other dtype objects for the same types, unknown to kernels.
        return tuple(np.frombuffer(column, f"i{column.itemsize}") for column in columns)

    def view(self) -> mmap | bytes:
        """Return all requests, each followed by its response."""
        return self.spill.view()

    def is_sent(self, number: int) -> bool:
        """Return whether a step is sent at all."""
        return number not in self._exclusions

    def times_ns(self, number: int) -> tuple[int, int | None]:
        """Return the capture times of a step's request and response."""
        return self.spill.times_ns(number)

    def close(self) -> None:
        """Close the spool."""
        self.spill.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
