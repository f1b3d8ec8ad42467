"""
Lives of topics: a topic that is deleted and created again has another id and other logs.

Offsets, leader epochs and all else that is known of a topic belong to one life. Messages that give
only the name mean the life of their time: it ends with a DeleteTopics, or where a message shows
another id (KIP-516).
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from dissector.capture.columns import Int64s
from dissector.protocol.messages import Message
from replay.order.read_write_sets import Log, Resource


class TopicLife(NamedTuple):
    """A life of a topic; the first has number 0."""

    name: str
    number: int

    @property
    def following(self) -> TopicLife:
        """The next life."""
        return TopicLife(self.name, self.number + 1)


class LifeEnd(NamedTuple):
    """
    The end of a topic's life.

    Attributes:
        life: The life.
        exchanges: The exchanges that end it, as far as they were captured: the deletion, and the
            first that shows the next life.
    """

    life: TopicLife
    exchanges: tuple[int, ...]


class EndedLife(NamedTuple):
    """
    A life of a topic that ends, as it is deleted.

    Attributes:
        topic: The captured name.
        ids: The captured ids in this life.
        next_ids: Those in the next one.
    """

    topic: str
    ids: tuple[UUID, ...]
    next_ids: tuple[UUID, ...]


@dataclass(slots=True)
class TopicLives:
    """
    The lives of the topics of a capture, collected from its exchanges in order.

    Attributes:
        ids: Topic -> its ids, each with the number of its life.
    """

    ids: dict[str, dict[UUID, int]] = field(default_factory=dict)
    _names: dict[UUID, str] = field(default_factory=dict)
    _current: dict[str, int] = field(default_factory=dict)
    _ends: dict[TopicLife, tuple[int, ...]] = field(default_factory=dict)

    def record(
        self, number: int, request: Message, response: Message | None, names: Mapping[UUID, str]
    ) -> bool:
        """
        Record an exchange; return whether it ends a life.

        Args:
            number: The number of the exchange.
            request: The request.
            response: Its response.
            names: Topic ids that it shows, and their names.
        """
        before = len(self._ends)
        for topic_id, name in names.items():
            if topic_id not in self._names:
                self._names[topic_id] = name
                ids = self.ids.setdefault(name, {})
                if self._current.get(name, 0) in ids.values():
                    self._end(name)
                self._add_evidence(number, name)
                ids[topic_id] = self._current.get(name, 0)
        if request.api == "DeleteTopics":
            for name in self._deleted(response):
                self._end(name)
                self._add_evidence(number, name)
        elif request.api == "CreateTopics":
            for name in _created(request, response):
                self._add_evidence(number, name)
        return len(self._ends) > before

    def _deleted(self, response: Message | None) -> Iterator[str]:
        """Yield the topics that a DeleteTopics response reports as deleted."""
        for each in response.body.responses if response and response.body else ():
            name = each.name or self._names.get(each.get("topic_id"))
            if name and not each.error_code:
                yield name

    def _end(self, name: str) -> None:
        life = self._current.get(name, 0)
        self._ends[TopicLife(name, life)] = ()
        self._current[name] = life + 1

    def _add_evidence(self, number: int, name: str) -> None:
        """Add an exchange that shows the end of the previous life, if there was one."""
        life = TopicLife(name, self._current.get(name, 0) - 1)
        if life in self._ends and number not in self._ends[life]:
            self._ends[life] += (number,)

    def ends(self) -> Iterator[LifeEnd]:
        """Yield the ends of lives."""
        yield from (LifeEnd(life, exchanges) for life, exchanges in self._ends.items())

    def ended_by_step(self, steps: Int64s, left_out: Container[int]) -> dict[int, list[EndedLife]]:
        """
        Return the lives that end with each step.

        Args:
            steps: For each exchange its step.
            left_out: Exchanges that are not sent.
        """
        found: dict[int, list[EndedLife]] = {}
        for life, exchanges in self.ends():
            planned = [each for each in exchanges if each < len(steps)]
            sent = [each for each in planned if each not in left_out]
            ids = (tuple(self._ids_of(each)) for each in (life, life.following))
            for exchange in [*sent, *planned][:1]:
                found.setdefault(int(steps[exchange]), []).append(EndedLife(life.name, *ids))
        return found

    def _ids_of(self, life: TopicLife) -> Iterator[UUID]:
        known = self.ids.get(life.name, {})
        return (each for each, number in known.items() if number == life.number)

    def newest_first(self, names: Mapping[UUID, str]) -> dict[UUID, str]:
        """Return names of topic ids, of each topic the id of its first life last."""
        by_life = sorted(names.items(), key=lambda of: -self.ids.get(of[1], {}).get(of[0], 0))
        return dict(by_life)

    def created_first(
        self, creations: Mapping[str, Sequence[int]], left_out: Container[int]
    ) -> set[str]:
        """
        Return the topics that do not exist before the capture creates them.

        Args:
            creations: Topic -> the exchanges that create it.
            left_out: Exchanges that are not sent.
        """
        ended = {life.name: exchanges[0] for life, exchanges in self.ends() if not life.number}
        return {
            name
            for name, exchanges in creations.items()
            if min(exchanges) not in left_out
            and (name not in ended or min(exchanges) < ended[name])
        }

    def log(self, log: Log) -> Log:
        """Return a log with the present life of its topic, if given by name."""
        topic, partition = log
        life = self._current.get(topic, 0) if isinstance(topic, str) else 0
        return (TopicLife(str(topic), life), partition) if life else log

    def placed(self, offsets: Mapping[Log, int]) -> Mapping[Log, int]:
        """Give the logs of an exchange the present lives of their topics."""
        return {self.log(at): n for at, n in offsets.items()} if self._current else offsets

    def of_id(self, topic_id: UUID) -> str | TopicLife | None:
        """Return the topic of an id: its name in its first life, or a later life."""
        name = self._names.get(topic_id)
        life = self.ids[name][topic_id] if name else 0
        return TopicLife(name, life) if name and life else name


def deletion_of(topic: str) -> Resource:
    """Return what stands for the deletion of a topic among the changes of other parts."""
    return "deletion", topic


def log_topic(life: TopicLife) -> str | TopicLife:
    """Return the topic of a life's logs."""
    return life if life.number else life.name


def _created(request: Message, response: Message | None) -> Iterator[str]:
    """Yield the topics that a CreateTopics response reports as created."""
    is_trial = request.body is not None and request.body.get("validate_only")
    for each in response.body.topics if response and response.body and not is_trial else ():
        if not each.error_code:
            yield each.name
