"""
Dependencies: which steps must have their responses before another may be sent.

A step depends on steps whose responses were captured before its request: on its own connection on
the newest of these, which keeps the depth of pipelining; on others if both access the same thing
and one of them writes it. Records keep the order of their captured offsets, members of groups that
of their generations, also if requests overlapped. All dependencies are earlier steps, so there are
no cycles.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import NamedTuple, Protocol
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from replay.plan.group_order import Shown, Turns
from replay.plan.log_order import Logs
from replay.plan.read_write_sets import COMMUTING, TOPICS, Footprint, Thing


class Times(Protocol):
    """Provides the connection and the times of exchanges, by their numbers."""

    def connection(self, number: int) -> int:
        """Return the connection of an exchange."""

    def times_ns(self, number: int) -> tuple[int, int | None]:
        """Return when request and response were complete; None without a response."""


_Answered = dict[int, tuple[int, int]]
"""Connection -> its newest step, and the time of its response."""


@dataclass(slots=True)
class _Touch:
    """Answered steps that accessed a thing; `commutes`: the order of its writes is irrelevant."""

    readers: _Answered = field(default_factory=dict)
    writers: _Answered = field(default_factory=dict)
    commutes: bool = False

    def add_others(self, found: set[int], connection: int, writes: bool) -> None:
        """Add the steps of other connections on which a step of this connection depends."""
        for side in self._sides(writes):
            for other, (step, _) in side.items():
                if other != connection:
                    found.add(step)

    def note(self, connection: int, step: int, begun_ns: int, done_ns: int, writes: bool) -> None:
        """Add an answered step; a write replaces the steps on which it depends itself."""
        if not writes:
            self.readers[connection] = step, done_ns
            return
        for side in self._sides(writes):
            if side:
                for other in [each for each, (_, at_ns) in side.items() if at_ns < begun_ns]:
                    del side[other]
        self.writers[connection] = step, done_ns

    def _sides(self, writes: bool) -> tuple[_Answered, ...]:
        """Return the steps whose order relative to a read or a write matters."""
        if not writes:
            return (self.writers,)
        return (self.readers,) if self.commutes else (self.readers, self.writers)


class Model(NamedTuple):
    """
    The common read and write sets of exchanges of one shape.

    Attributes:
        touches: Numbers of things, doubled, plus one for a write.
        logs: Numbers of the logs to which they append.
        partitions: Those of `touches` that take effect at the end of a transaction.
    """

    touches: array[int]
    logs: list[int]
    partitions: frozenset[int]


class Causes:
    """
    Collects the read and write sets of exchanges in order, and computes dependencies from them.

    Attributes:
        partitions: Topic -> the number of partitions in the capture.
        things: Accessed thing -> its number.
        logs: Appended and fetched offsets.
        turns: Group events and their order.
        lacked: Topics that did not exist at first, and may have been auto-created by a request.
        ended: Producer -> exchanges that ended its transactions.
        saw_ends: Exchange and producer, for each fetched end of a transaction.
        observed: Exchanges that query progress, and the things, as in `Model.touches`.
    """

    def __init__(self) -> None:
        self.partitions: dict[str | UUID, int] = {}
        self.things: dict[Thing, int] = {}
        self._touches = array("i")
        self._ends = array("q", [0])
        self.logs = Logs()
        self.turns = Turns()
        self.ended: dict[int, list[int]] = {}
        self.saw_ends: list[tuple[int, int]] = []
        self.observed: list[tuple[int, array[int]]] = []
        self._begun: dict[int, set[int]] = {}
        self._open: dict[int, dict[int, int]] = {}
        self._lacking: set[str] = set()
        self.lacked: set[str] = set()

    def add(self, found: Footprint) -> None:
        """Add the read and write sets of the next exchange."""
        number = len(self._ends) - 1
        self._note_new_topics(found)
        self._touches.extend(self._touched(found))
        for thing in found.reads:
            if thing[0] == "producer":
                self._begun.setdefault(thing[1], set()).update(self._in_transaction(found))
        if found.ended is not None:
            # Markers are written to all partitions of the transaction.
            self._touches.extend(sorted(self._begun.pop(found.ended, ())))
            for begun in self._open.pop(found.ended, {}).items():
                self.logs.ended(*begun, number)
        self._ends.append(len(self._touches))
        if found.observes:
            self.observed.append((number, array("i", self._touched(Footprint(found.observes)))))
        writers = [thing[1] for thing in found.reads if thing[0] == "producer"]
        for log, offset in found.wrote.items():
            self._wrote(self.logs.number(log), offset, number, writers)
        for log, offset in found.saw.items():
            self.logs.saw(self.logs.number(log), offset, number)
        self.saw_ends += [(number, producer) for producer in found.producers]
        if found.ended is not None:
            self.ended.setdefault(found.ended, []).append(number)
        if found.turn is not None:
            self.turns.add(number, found.turn)
        for topic, count in found.partitions.items():
            self.partitions[topic] = max(self.partitions.get(topic, 0), count)

    def _note_new_topics(self, found: Footprint) -> None:
        """Count the first exchange that finds a missing topic as its creator; it is retried."""
        new = self._lacking & found.found
        self._lacking = (self._lacking | found.lacked) - new
        self.lacked |= found.lacked
        if new:
            found.writes.update({TOPICS}, (("topic", name) for name in new))
            found.reads -= found.writes

    def _touched(self, found: Footprint) -> Iterator[int]:
        for things, writes in ((found.reads, 0), (found.writes, 1)):
            for thing in things:
                yield 2 * self.things.setdefault(thing, len(self.things)) + writes

    def model(self, found: Footprint) -> Model:
        """Return the model of exchanges with these read and write sets, apart from producers."""
        reads = {thing for thing in found.reads if thing[0] != "producer"}
        logs = [self.logs.number(log) for log in found.wrote]
        touches = array("i", self._touched(Footprint(reads, found.writes)))
        return Model(touches, logs, frozenset(self._in_transaction(found)))

    def _in_transaction(self, found: Footprint) -> Iterator[int]:
        """Yield the writes that take effect at the end of a transaction."""
        kinds = ["partition"] * bool(found.wrote) + ["group"] * found.commits
        return self._touched(Footprint(writes={each for each in found.writes if each[0] in kinds}))

    def _wrote(self, log: int, offset: int, number: int, producers: Iterable[int]) -> None:
        """Add the first offset that an exchange appended to a log, and its producers."""
        self.logs.wrote(log, offset, number)
        for each in producers:
            self._open.setdefault(each, {}).setdefault(log, offset)

    def add_alike(self, model: Model, offsets: Iterable[int], producers: Iterable[int]) -> None:
        """
        Add the next exchange, by a model.

        Args:
            model: The model of its read and write sets.
            offsets: The first offsets that it appended, in the order of the model's logs.
            producers: The ids of the producers.
        """
        number = len(self._ends) - 1
        self._touches.extend(model.touches)
        known = [each for each in producers if each >= 0]
        for each in known:
            thing = self.things.setdefault(("producer", each), len(self.things))
            self._touches.append(2 * thing)
            self._begun.setdefault(each, set()).update(model.partitions)
        self._ends.append(len(self._touches))
        for log, offset in zip(model.logs, offsets, strict=True):
            self._wrote(log, offset, number, known)

    def touched(self, number: int) -> array[int]:
        """Return the things that an exchange accessed, as in `Model.touches`."""
        return self._touches[self._ends[number] : self._ends[number + 1]]

    def writers(
        self, things: Collection[int], same: Mapping[int, int]
    ) -> Iterator[tuple[int, int]]:
        """
        Yield things and exchanges that write them.

        Args:
            things: The numbers of the things.
            same: Number of a thing known by topic id -> its number by topic name.
        """
        touches = np.frombuffer(self._touches, np.int32)
        numbers = np.array([same.get(each, each) for each in range(len(self.things))], np.int64)
        is_wanted = np.isin(numbers, list(things))
        at = np.flatnonzero((touches & 1).astype(bool) & is_wanted[touches >> 1])
        ends = np.frombuffer(self._ends, np.int64)
        exchanges = np.searchsorted(ends, at, "right") - 1
        yield from zip(numbers[touches[at] >> 1].tolist(), exchanges.tolist(), strict=True)

    def after(
        self, order: Sequence[int], times: Times, name: Callable[[UUID], str | None]
    ) -> Iterator[tuple[int, ...]]:
        """
        Yield the dependencies of each step.

        Args:
            order: The exchanges of the steps, in captured order; -1 for a step that is not sent.
            times: Provides their connections and times.
            name: Returns the name of a topic id.
        """
        sweep = _Sweep(self, times, name)
        further = self._further(np.asarray(order, np.int64), times, name)
        for step, number in enumerate(order):
            if number < 0:
                yield ()
                continue
            found = sweep.ask(step, number)
            found.update(further.get(step, ()))
            yield tuple(sorted(found))

    def groups(self, order: Sequence[int]) -> Shown:
        """Return what the steps show of groups."""
        return self.turns.groups(self._steps(np.asarray(order, np.int64)))

    def _steps(self, order: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the step of each exchange; -1 if it is not sent."""
        sent = np.flatnonzero(order >= 0)
        step_of = np.full(len(self._ends) - 1, -1, np.int32)
        step_of[order[sent]] = sent
        return step_of

    def _further(
        self, order: NDArray[np.int64], times: Times, name: Callable[[UUID], str | None]
    ) -> dict[int, list[int]]:
        """Return dependencies on records, on ends of transactions, and on group generations."""
        sent = np.flatnonzero(order >= 0)
        step_of = self._steps(order)
        connections = np.full(len(order), -1, np.int32)
        connections[sent] = array("i", map(times.connection, map(int, order[sent])))
        found: dict[int, list[int]] = {}
        for step, before in self.logs.causes(step_of, connections, name):
            found.setdefault(step, []).append(before)
        for step, before in self.turns.causes(step_of, connections, times.times_ns):
            found.setdefault(step, []).append(before)
        for number, producer in self.saw_ends:
            reader = int(step_of[number])
            ends = (int(step_of[each]) for each in self.ended.get(producer, ()))
            earlier = [each for each in ends if 0 <= each < reader]
            if earlier:
                found.setdefault(reader, []).append(max(earlier))
        return found


class _Sweep:
    """Processes captured requests in order, merged with the responses by time."""

    def __init__(self, causes: Causes, times: Times, name: Callable[[UUID], str | None]) -> None:
        self._causes = causes
        self._times = times
        self._same = same_things(causes.things, name)
        self._commuting = {causes.things[each] for each in COMMUTING if each in causes.things}
        self._touches: dict[int, _Touch] = {}
        self._newest: dict[int, int] = {}
        self._answers: list[tuple[int, int, int]] = []

    def ask(self, step: int, number: int) -> set[int]:
        """Return the dependencies of a request on steps with earlier responses."""
        begun_ns, done_ns = self._times.times_ns(number)
        while self._answers and self._answers[0][0] < begun_ns:
            self._answer(*heappop(self._answers))
        if done_ns is not None:
            heappush(self._answers, (done_ns, step, number))
        connection = self._times.connection(number)
        found = {self._newest[connection]} if connection in self._newest else set()
        for each in self._causes.touched(number):
            touch = self._touches.get(self._same.get(each >> 1, each >> 1))
            if touch is not None:
                touch.add_others(found, connection, bool(each & 1))
        return found

    def _answer(self, done_ns: int, step: int, number: int) -> None:
        """Record the read and write sets of a step at the time of its response."""
        connection = self._times.connection(number)
        begun_ns = self._times.times_ns(number)[0]
        self._newest[connection] = max(self._newest.get(connection, -1), step)
        for each in self._causes.touched(number):
            thing = self._same.get(each >> 1, each >> 1)
            touch = self._touches.get(thing)
            if touch is None:
                touch = self._touches[thing] = _Touch(commutes=thing in self._commuting)
            touch.note(connection, step, begun_ns, done_ns, bool(each & 1))


def same_things(things: dict[Thing, int], name: Callable[[UUID], str | None]) -> dict[int, int]:
    """Map things with a topic id to the same ones with the topic name, by their numbers."""
    same: dict[int, int] = {}
    for thing, number in list(things.items()):
        title = name(thing[1]) if len(thing) > 1 and isinstance(thing[1], UUID) else None
        if title is not None:
            named = (thing[0], title, *thing[2:])
            same[number] = things.setdefault(named, len(things))
    return same
