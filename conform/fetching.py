"""
Fetch as a conversation: what each request asks for, also where it says so only by its session.

An incremental request (KIP-227) names the partitions that changed; what it asks of the others was
said before, on the same connection. A `Session` is what the broker has to remember of it, read off
the requests, and what it last told of each partition.

Source: FetchMetadata.java, FetchSession.scala; KIP-227.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from uuid import UUID
from weakref import ref

from construct import Container

from conform.memory import Newest
from conform.turn import Turn

FIRST_WITH_SESSIONS = 7
FIRST_WITH_IDS = 13
INITIAL_EPOCH, FINAL_EPOCH = 0, -1
LAST_EPOCH = 2**31 - 1
_MOST_SESSIONS = 16
"""Sessions of one connection that are remembered; a client has one a broker."""

Partition: TypeAlias = tuple[str | UUID, int]
"""Name or id of the topic, as the messages have it, and number."""


@dataclass(slots=True)
class Told:
    """What an answer said last of a partition: an answer to come may leave it out if it is so."""

    high_watermark: int
    log_start_offset: int

    @classmethod
    def of(cls, partition: Any) -> Told:
        """Return what an answer says of a partition."""
        return cls(partition.high_watermark, partition.get("log_start_offset", -1))


@dataclass(slots=True)
class Session:
    """
    A fetch session.

    Attributes:
        epoch: That the next request has to have.
        offsets: What is asked of each partition.
        told: What was last told of it, once it was without an error.
    """

    epoch: int = 1
    offsets: dict[Partition, int] = field(default_factory=dict)
    told: dict[Partition, Told] = field(default_factory=dict)

    def after(self) -> int:
        """Return the epoch that follows; 0 is passed over when it wraps."""
        return 1 if self.epoch == LAST_EPOCH else self.epoch + 1


@dataclass(slots=True)
class Fetching:
    """
    One Fetch exchange.

    Attributes:
        is_full: Whether the request lists all that it wants.
        named: What it asks of the partitions that it lists.
        session: The session that it goes on with, as it was before; None where it has none, or
            its beginning was not seen.
        session_id: Of the request.
        session_epoch: Likewise.
    """

    is_full: bool
    named: dict[Partition, int]
    session: Session | None
    session_id: int
    session_epoch: int

    def offset_of(self, partition: Partition) -> int | None:
        """Return the offset that is asked of a partition; None where that was not seen."""
        found = self.named.get(partition)
        if found is None and self.session is not None:
            return self.session.offsets.get(partition)
        return found


@dataclass(frozen=True, slots=True)
class _Effect:
    """
    What an exchange changes about the sessions of its connection, once it was looked at.

    Attributes:
        ends: The session that is no more.
        begins: The session that is new, by its id.
        goes_on: The session that goes on.
        asked: The offsets that it asks for from now on.
        told: What was told of partitions; None after an error, when the broker tells all again.
        forgotten: The partitions that it asks for no more.
    """

    ends: int | None = None
    begins: int = 0
    goes_on: Session | None = None
    asked: dict[Partition, int] = field(default_factory=dict)
    told: dict[Partition, Told | None] = field(default_factory=dict)
    forgotten: tuple[Partition, ...] = ()


class _Owners(Newest[tuple[str, int], int]):
    """By broker and session the connection that speaks of it."""

    def are_others(self, turn: Turn, session_id: int) -> bool:
        """Note who goes on with a session; tell whether another connection did before."""
        key, number = (turn.talk.broker.address, session_id), turn.talk.number
        before = self.get(key, number)
        self[key] = number
        return before != number


class _Fetches:
    """The sessions of a connection, and its newest exchange, of which no bytes are kept."""

    def __init__(self) -> None:
        self._turn: Callable[[], Turn | None] = lambda: None
        self._newest: Fetching | None = None
        self._effect = _Effect()
        self._sessions: Newest[int, Session] = Newest(_MOST_SESSIONS)

    def at(self, turn: Turn) -> Fetching | None:
        if self._turn() is not turn:
            self._take(self._effect)
            self._turn, self._newest, self._effect = ref(turn), None, _Effect()
            if turn.asked is None or turn.version is None or turn.talk.torn:
                self._sessions.clear()
            if turn.asked is not None and turn.version is not None:
                self._newest = self._look(turn, turn.asked, turn.version)
                self._effect = _effect(turn, self._newest)
        return self._newest

    def _look(self, turn: Turn, asked: Container, version: int) -> Fetching:
        named = {key: each.fetch_offset for key, each in partitions(asked.topics)}
        if version < FIRST_WITH_SESSIONS:
            return Fetching(True, named, None, 0, FINAL_EPOCH)
        epoch = asked.session_epoch
        is_full = epoch in (INITIAL_EPOCH, FINAL_EPOCH)
        session = None
        if asked.session_id and turn.world.state(_Owners).are_others(turn, asked.session_id):
            self._sessions.pop(asked.session_id, None)
        elif not is_full:
            session = self._sessions.get(asked.session_id)
        return Fetching(is_full, named, session, asked.session_id, epoch)

    def _take(self, effect: _Effect) -> None:
        if effect.ends is not None:
            self._sessions.pop(effect.ends, None)
        session = effect.goes_on
        if effect.begins:
            session = self._sessions[effect.begins] = Session(epoch=0)
        if session is None:
            return
        session.epoch = session.after()
        session.offsets.update(effect.asked)
        for key in effect.forgotten:
            session.offsets.pop(key, None)
            session.told.pop(key, None)
        for key, told in effect.told.items():
            if told is None:
                session.told.pop(key, None)
            else:
                session.told[key] = told


def _effect(turn: Turn, fetching: Fetching) -> _Effect:
    """Return what an exchange changes."""
    asked, told = turn.asked, turn.told
    if told is None or asked is None or told.get("error_code"):
        return _Effect(ends=fetching.session_id)
    said = {
        key: None if each.error_code else Told.of(each) for key, each in partitions(told.responses)
    }
    if fetching.is_full:
        begins = 0 if turn.talk.torn else told.get("session_id", 0)
        return _Effect(fetching.session_id, begins, None, fetching.named, said)
    if fetching.session is None:
        return _Effect()
    forgotten = tuple(
        (_key(topic), number)
        for topic in asked.forgotten_topics_data or ()
        for number in topic.partitions or ()
    )
    return _Effect(None, 0, fetching.session, fetching.named, said, forgotten)


def fetching_of(turn: Turn) -> Fetching | None:
    """Return what a Fetch exchange asks for; None where its request can't be read."""
    return turn.talk.state(_Fetches).at(turn)


def partitions(topics: Any) -> list[tuple[Partition, Any]]:
    """Return the partitions of a request or a response with what is said of each."""
    return [
        ((_key(topic), each.get("partition", each.get("partition_index"))), each)
        for topic in topics or ()
        for each in topic.partitions or ()
    ]


def _key(topic: Any) -> str | UUID:
    name: str | UUID | None = topic.get("topic")
    found: str | UUID = topic.topic_id if name is None else name
    return found
