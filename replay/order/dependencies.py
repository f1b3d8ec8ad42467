"""
Dependencies: which steps must have their responses before another may be sent.

A step depends on steps with responses captured before its request: on its own connection on the
newest of these, which keeps the depth of pipelining; on others if both access the same resource and
one of them writes it. Records keep the order of their captured offsets, members of groups the order
of their generations, and a topic is created by the request that created it, also if requests
overlapped. All dependencies are earlier steps, so there are no cycles.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from replay.order.access_sweep import AccessSweep, CaptureTimes
from replay.order.group_order import GroupHistory, GroupOrder
from replay.order.log_order import LogOrder, NameTopic
from replay.order.read_write_sets import (
    COMMUTING,
    TOPICS,
    UNKNOWN_OFFSET,
    Log,
    ReadWriteSets,
    Resource,
    ShapeReadWriteSets,
)
from replay.order.topic_lives import TopicLives, log_topic


class Dependencies:
    """
    Collects the read and write sets of exchanges in order, and computes dependencies from them.

    Attributes:
        partitions: Topic -> the number of partitions in the capture.
        resources: Accessed resource -> its number.
        lives: Deletions of topics.
        logs: Appended and fetched offsets.
        group_order: Group events and their order.
        auto_created: Topics that did not exist at first, and may have been auto-created.
        transaction_ends: Producer -> exchanges that ended its transactions.
        fetched_transaction_ends: Exchange and producer, for each fetched end of a transaction.
        progress_queries: Exchanges that query progress, and the resources, as in
            `ShapeReadWriteSets.accesses`.
        creations: Topic -> exchanges that created it.
        failed_creations: Exchange and topic, for each that existed when it was to be created.
    """

    def __init__(self) -> None:
        self.partitions: dict[str | UUID, int] = {}
        self.resources: dict[Resource, int] = {}
        self._accesses = array("i")
        self._ends = array("q", [0])
        self.lives = TopicLives()
        self.logs = LogOrder()
        self.group_order = GroupOrder()
        self.transaction_ends: dict[int, list[int]] = {}
        self.fetched_transaction_ends: list[tuple[int, int]] = []
        self.progress_queries: list[tuple[int, array[int]]] = []
        self._transaction_accesses: dict[int, set[int]] = {}
        self._open_transactions: dict[int, dict[int, int]] = {}
        self.creations: dict[str, list[int]] = {}
        self.failed_creations: list[tuple[int, str]] = []
        self._not_found_topics: set[str] = set()
        self.auto_created: set[str] = set()

    def add(self, sets: ReadWriteSets) -> None:
        """Add the read and write sets of the next exchange, which are not changed."""
        number = len(self._ends) - 1
        self._accesses.extend(self._encode_accesses(self._with_new_topics(sets)))
        for resource in sets.reads:
            if resource[0] == "producer":
                self._transaction_accesses.setdefault(resource[1], set()).update(
                    self._in_transaction(sets)
                )
        if sets.ended_transaction is not None:
            # Markers are written to all partitions of the transaction.
            self._accesses.extend(
                sorted(self._transaction_accesses.pop(sets.ended_transaction, ()))
            )
            for begun in self._open_transactions.pop(sets.ended_transaction, {}).items():
                self.logs.record_transaction_end(*begun, number)
        self._ends.append(len(self._accesses))
        if sets.progress_queries:
            self.progress_queries.append(
                (number, array("i", self._encode_accesses(ReadWriteSets(sets.progress_queries))))
            )
        writers = [resource[1] for resource in sets.reads if resource[0] == "producer"]
        for log, offset in self.lives.placed(sets.appended_offsets).items():
            self._record_append(self.logs.number(log), offset, number, writers)
        for log, offset in self.lives.placed(sets.read_offsets).items():
            self.logs.record_read(self.logs.number(log), offset, number)
        self.fetched_transaction_ends += [(number, producer) for producer in sets.ended_producers]
        if sets.ended_transaction is not None:
            self.transaction_ends.setdefault(sets.ended_transaction, []).append(number)
        if sets.group_event is not None:
            self.group_order.add(number, sets.group_event)
        for name in sets.created_topics:
            self.creations.setdefault(name, []).append(number)
        self.failed_creations += [(number, name) for name in sets.already_created_topics]
        self._record_partitions(sets)

    def _record_partitions(self, sets: ReadWriteSets) -> None:
        for topic, count in sets.partitions.items():
            self.partitions[topic] = max(self.partitions.get(topic, 0), count)

    def _with_new_topics(self, sets: ReadWriteSets) -> ReadWriteSets:
        """Count the first exchange that finds a missing topic as its creator; it is retried."""
        new = self._not_found_topics & sets.existing_topics
        self._not_found_topics = (self._not_found_topics | sets.auto_created) - new
        self.auto_created |= sets.auto_created
        if not new:
            return sets
        writes = sets.writes | {TOPICS, *(("topic", name) for name in new)}
        return ReadWriteSets(sets.reads - writes, writes)

    def _encode_accesses(self, sets: ReadWriteSets) -> Iterator[int]:
        for resources, writes in ((sets.reads, 0), (sets.writes, 1)):
            for resource in resources:
                yield 2 * self.resources.setdefault(resource, len(self.resources)) + writes

    def shape_sets(self, sets: ReadWriteSets) -> ShapeReadWriteSets:
        """Return the model of exchanges with these read and write sets, apart from producers."""
        reads = {resource for resource in sets.reads if resource[0] != "producer"}
        logs = [self.log_number(log) for log in sets.appended_offsets]
        accesses = array("i", self._encode_accesses(ReadWriteSets(reads, sets.writes)))
        self._record_partitions(sets)
        return ShapeReadWriteSets(accesses, logs, frozenset(self._in_transaction(sets)))

    def _in_transaction(self, sets: ReadWriteSets) -> Iterator[int]:
        """Yield the writes that take effect at the end of a transaction."""
        kinds = ["partition"] * bool(sets.appended_offsets) + [
            "group"
        ] * sets.commits_in_transaction
        return self._encode_accesses(
            ReadWriteSets(writes={each for each in sets.writes if each[0] in kinds})
        )

    def _record_append(self, log: int, offset: int, number: int, producers: Iterable[int]) -> None:
        """Add the first offset that an exchange appended to a log, and its producers."""
        self.logs.record_append(log, offset, number)
        for each in producers if offset != UNKNOWN_OFFSET else ():
            self._open_transactions.setdefault(each, {}).setdefault(log, offset)

    def add_by_shape(
        self,
        sets: ShapeReadWriteSets,
        offsets: Iterable[int] = (),
        producers: Iterable[int] = (),
        reads: Iterable[tuple[int, int]] = (),
        ended_producers: Iterable[int] = (),
    ) -> None:
        """
        Add the next exchange, by a model.

        Args:
            sets: The model of its read and write sets.
            offsets: The first offsets that it appended, in the order of the model's logs.
            producers: The ids of the producers.
            reads: Numbers of logs (`log_number`), and the last offset that must be in each.
            ended_producers: As of `ReadWriteSets`.
        """
        number = len(self._ends) - 1
        self._accesses.extend(sets.accesses)
        producer_ids = [each for each in producers if each >= 0]
        for each in producer_ids:
            resource = self.resources.setdefault(("producer", each), len(self.resources))
            self._accesses.append(2 * resource)
            self._transaction_accesses.setdefault(each, set()).update(sets.partitions)
        self._ends.append(len(self._accesses))
        for log, offset in zip(sets.logs, offsets, strict=True):
            self._record_append(log, offset, number, producer_ids)
        for log, offset in reads:
            self.logs.record_read(log, offset, number)
        self.fetched_transaction_ends += [(number, producer) for producer in ended_producers]

    def log_number(self, log: Log) -> int:
        """Return the number of a log, by the present life of its topic."""
        return self.logs.number(self.lives.log(log))

    def access_columns(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Return for each exchange the number of its accesses, and the accesses of all."""
        ends = np.frombuffer(self._ends, np.int64)
        return ends[1:] - ends[:-1], np.frombuffer(self._accesses, np.int32)

    def ordered_accesses(self, same: Mapping[int, int]) -> Callable[[int], list[int]]:
        """
        Return what gives the accesses of an exchange that order it: of resources that are written.

        Args:
            same: As for `writers`.
        """
        numbers = np.array([same.get(each, each) for each in range(len(self.resources))], np.int32)
        accesses = np.frombuffer(self._accesses, np.int32)
        named = numbers[accesses >> 1] << 1 | accesses & 1
        is_written = np.zeros(len(numbers), bool)
        is_written[named[(named & 1).astype(bool)] >> 1] = True
        is_kept = is_written[named >> 1]
        ends = np.concatenate(([0], np.cumsum(is_kept)))[np.frombuffer(self._ends, np.int64)]
        kept, begins = array("i", named[is_kept].tobytes()), array("q", ends.tobytes())
        return lambda number: kept[begins[number] : begins[number + 1]].tolist()

    def writers(
        self, wanted: Collection[int], same: Mapping[int, int]
    ) -> Iterator[tuple[int, int]]:
        """
        Yield resources and exchanges that write them.

        Args:
            wanted: The numbers of the resources.
            same: Number of a resource known by topic id -> its number by topic name.
        """
        accesses = np.frombuffer(self._accesses, np.int32)
        numbers = np.array([same.get(each, each) for each in range(len(self.resources))], np.int64)
        is_wanted = np.isin(numbers, list(wanted))
        at = np.flatnonzero((accesses & 1).astype(bool) & is_wanted[accesses >> 1])
        ends = np.frombuffer(self._ends, np.int64)
        exchanges = np.searchsorted(ends, at, "right") - 1
        yield from zip(numbers[accesses[at] >> 1].tolist(), exchanges.tolist(), strict=True)

    def of_steps(
        self, order: Sequence[int], times: CaptureTimes, name: Callable[[UUID], str | None]
    ) -> Iterator[tuple[int, ...]]:
        """
        Yield the dependencies of each step.

        Args:
            order: The exchanges of the steps, in captured order; -1 for a step that is not sent.
            times: Provides their connections and times.
            name: Returns the name of a topic id.
        """
        same = same_resources(self.resources, name)
        commuting = {self.resources[each] for each in COMMUTING if each in self.resources}
        sweep = AccessSweep(self.ordered_accesses(same), commuting, times)
        further = self._log_and_group_dependencies(np.asarray(order, np.int64), times, name)
        for step, number in enumerate(order):
            if number < 0:
                yield ()
                continue
            found = sweep.record_request(step, number)
            found.update(further.get(step, ()))
            yield tuple(sorted(found))

    def served(self, name: Callable[[UUID], str | None]) -> Iterator[NDArray[np.int64]]:
        """Yield exchanges in the order in which a broker served them, for each log or topic."""
        self.logs.deletions = {
            log_topic(each.life): each.exchanges[0]
            for each in self.lives.ends()
            if each.exchanges[0] < len(self._ends) - 1
        }
        yield from self.logs.append_orders(self._log_topic(name))
        for number, topic in self.failed_creations:
            creators = self.creations.get(topic, [])
            if len(creators) == 1:
                yield np.array([*creators, number], np.int64)

    def _log_topic(self, name: Callable[[UUID], str | None]) -> NameTopic:
        return lambda topic_id: self.lives.of_id(topic_id) or name(topic_id)

    def group_history(self, order: Sequence[int]) -> GroupHistory:
        """Return the evidence of the steps about groups."""
        return self.group_order.history(self._step_of(np.asarray(order, np.int64)))

    def _step_of(self, order: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the step of each exchange; -1 if it is not sent."""
        sent = np.flatnonzero(order >= 0)
        step_of = np.full(len(self._ends) - 1, -1, np.int32)
        step_of[order[sent]] = sent
        return step_of

    def _log_and_group_dependencies(
        self, order: NDArray[np.int64], times: CaptureTimes, name: Callable[[UUID], str | None]
    ) -> dict[int, list[int]]:
        """Return dependencies on records, on ends of transactions, and on group generations."""
        sent = np.flatnonzero(order >= 0)
        step_of = self._step_of(order)
        connections = np.full(len(order), -1, np.int32)
        connections[sent] = np.fromiter(map(times.connection, order[sent].tolist()), np.int32)
        found: dict[int, list[int]] = {}
        for step, before in self.logs.dependencies(step_of, connections, self._log_topic(name)):
            found.setdefault(step, []).append(before)
        for step, before in self.group_order.dependencies(step_of, connections, times.times_ns):
            found.setdefault(step, []).append(before)
        for number, producer in self.fetched_transaction_ends:
            _add_newest(found, step_of, number, self.transaction_ends.get(producer, ()))
        for number, topic in self.failed_creations:
            _add_newest(found, step_of, number, self.creations.get(topic, ()))
        return found


def _add_newest(
    found: dict[int, list[int]], step_of: NDArray[np.int32], number: int, before: Iterable[int]
) -> None:
    """Add a dependency on the newest of some earlier exchanges."""
    step = int(step_of[number])
    earlier = [int(step_of[each]) for each in before if 0 <= step_of[each] < step]
    if earlier:
        found.setdefault(step, []).append(max(earlier))


def same_resources(
    resources: dict[Resource, int], name: Callable[[UUID], str | None]
) -> dict[int, int]:
    """Map resources with a topic id to the same ones with the topic name, by their numbers."""
    same: dict[int, int] = {}
    for resource, number in list(resources.items()):
        title = name(resource[1]) if len(resource) > 1 and isinstance(resource[1], UUID) else None
        if title is not None:
            named = (resource[0], title, *resource[2:])
            same[number] = resources.setdefault(named, len(resources))
    return same
