"""
Which steps must be answered before another may be sent.

A step waits for what was answered before it was captured: on its own connection for the newest such
answer, which keeps the depth of pipelining; on others where both touch the same thing and one of
them changes it. Records keep their order by their captured offsets, members of groups by their
generations, also where requests overlapped. A step only ever waits for earlier ones, so never for
itself.
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

from replay.footprint import COMMUTING, TOPICS, Footprint, Thing
from replay.logs import Logs
from replay.turns import Shown, Turns


class Times(Protocol):
    """Whoever knows connection and times of exchanges, by their number."""

    def connection(self, number: int) -> int:
        """Return the connection of an exchange."""

    def times_ns(self, number: int) -> tuple[int, int | None]:
        """Return when request and response were complete."""


_Answered = dict[int, tuple[int, int]]
"""Connection -> its newest step, and when it was answered."""


@dataclass(slots=True)
class _Touch:
    """Answered steps that touched a thing; `commutes`: in whatever order it is changed."""

    readers: _Answered = field(default_factory=dict)
    writers: _Answered = field(default_factory=dict)
    commutes: bool = False

    def add_others(self, found: set[int], connection: int, writes: bool) -> None:
        """Add the steps of other connections that one of this connection waits for."""
        for side in self._sides(writes):
            for other, (step, _) in side.items():
                if other != connection:
                    found.add(step)

    def note(self, connection: int, step: int, begun_ns: int, done_ns: int, writes: bool) -> None:
        """Take over an answered step; what it waited for itself need not be named again."""
        if not writes:
            self.readers[connection] = step, done_ns
            return
        for side in self._sides(writes):
            if side:
                for other in [each for each, (_, at_ns) in side.items() if at_ns < begun_ns]:
                    del side[other]
        self.writers[connection] = step, done_ns

    def _sides(self, writes: bool) -> tuple[_Answered, ...]:
        """Return what has an order with a step."""
        if not writes:
            return (self.writers,)
        return (self.readers,) if self.commutes else (self.readers, self.writers)


class Model(NamedTuple):
    """
    What exchanges of a shape have in common.

    Attributes:
        touches: Numbers of things, doubled, and one more where they are changed.
        logs: What they append to.
        partitions: Those of `touches` that are of partitions written to.
    """

    touches: array[int]
    logs: list[int]
    partitions: frozenset[int]


class Causes:
    """
    Gathers footprints by the number of their exchange, and then tells causes.

    Attributes:
        partitions: Topic -> how many partitions the capture shows.
        things: What was touched -> its number.
        logs: What was appended and fetched.
        turns: What was told of groups.
        lacked: Topics that did not exist at first, and may have been created by asking for them.
        ended: Producer -> exchanges that ended its transactions.
        saw_ends: Exchange and producer, where the end of a transaction was fetched.
        observed: Exchanges that ask how far something has come, and what, as in `Model.touches`.
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
        """Take over the footprint of the next exchange."""
        number = len(self._ends) - 1
        self._note_new_topics(found)
        self._touches.extend(self._touched(found))
        for thing in found.reads:
            if thing[0] == "producer":
                self._begun.setdefault(thing[1], set()).update(self._in_transaction(found))
        if found.ended is not None:
            # Markers are written to what the transaction wrote to.
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
        """Take who sees first that a topic came to be for who made it: it is asked until then."""
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
        """Return what exchanges with nearly this footprint have in common: but for producers."""
        reads = {thing for thing in found.reads if thing[0] != "producer"}
        logs = [self.logs.number(log) for log in found.wrote]
        touches = array("i", self._touched(Footprint(reads, found.writes)))
        return Model(touches, logs, frozenset(self._in_transaction(found)))

    def _in_transaction(self, found: Footprint) -> Iterator[int]:
        """Yield what becomes of use with the end of the transaction that a producer writes in."""
        kinds = ["partition"] * bool(found.wrote) + ["group"] * found.commits
        return self._touched(Footprint(writes={each for each in found.writes if each[0] in kinds}))

    def _wrote(self, log: int, offset: int, number: int, producers: Iterable[int]) -> None:
        """Note where an exchange appended, and who wrote that."""
        self.logs.wrote(log, offset, number)
        for each in producers:
            self._open.setdefault(each, {}).setdefault(log, offset)

    def add_alike(self, model: Model, offsets: Iterable[int], producers: Iterable[int]) -> None:
        """
        Take over the next exchange, by a model.

        Args:
            model: Of its footprint.
            offsets: Of the first records that it appended, in the order of the model's logs.
            producers: The ids of those who wrote them.
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
        """Return the numbers of the things that an exchange touched, as in `Model.touches`."""
        return self._touches[self._ends[number] : self._ends[number + 1]]

    def writers(
        self, things: Collection[int], same: Mapping[int, int]
    ) -> Iterator[tuple[int, int]]:
        """
        Yield things and exchanges that change them.

        Args:
            things: Their numbers.
            same: Number of a thing -> that of the same one, told by name.
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
        Yield for each step the steps that must be answered before.

        Args:
            order: The exchanges that are steps, as they were captured; -1 where one is not sent.
            times: Knows their connections and times.
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
        """Tell what the steps show of groups."""
        return self.turns.groups(self._steps(np.asarray(order, np.int64)))

    def _steps(self, order: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return for each exchange its step; -1 where it is not sent."""
        sent = np.flatnonzero(order >= 0)
        step_of = np.full(len(self._ends) - 1, -1, np.int32)
        step_of[order[sent]] = sent
        return step_of

    def _further(
        self, order: NDArray[np.int64], times: Times, name: Callable[[UUID], str | None]
    ) -> dict[int, list[int]]:
        """Return what waits for a record, for the end of a transaction, or for a generation."""
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
    """Goes through the requests as they were captured, and through the answers meanwhile."""

    def __init__(self, causes: Causes, times: Times, name: Callable[[UUID], str | None]) -> None:
        self._causes = causes
        self._times = times
        self._same = same_things(causes.things, name)
        self._commuting = {causes.things[each] for each in COMMUTING if each in causes.things}
        self._touches: dict[int, _Touch] = {}
        self._newest: dict[int, int] = {}
        self._answers: list[tuple[int, int, int]] = []

    def ask(self, step: int, number: int) -> set[int]:
        """Return what was answered before a request that it may depend on."""
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
        """Note what an answered step touched."""
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
    """Return for things that are told by a topic id the same ones told by name."""
    same: dict[int, int] = {}
    for thing, number in list(things.items()):
        title = name(thing[1]) if len(thing) > 1 and isinstance(thing[1], UUID) else None
        if title is not None:
            named = (thing[0], title, *thing[2:])
            same[number] = things.setdefault(named, len(things))
    return same
