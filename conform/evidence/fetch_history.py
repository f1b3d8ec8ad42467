"""
Fetch sessions: the offsets of each request, given by the request itself or by its session.

An incremental request (KIP-227) names only the partitions that changed; the offsets of the others
were sent before, on the same connection. A `Session` reconstructs the broker's session state from
the requests, and holds the last response for each partition.

Source: FetchMetadata.java, FetchSession.scala; KIP-227.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from uuid import UUID
from weakref import ref

from construct import Container

from conform.evidence.bounded_memory import Newest
from conform.evidence.observation import Turn

FIRST_WITH_SESSIONS = 7
FIRST_WITH_IDS = 13
INITIAL_EPOCH, FINAL_EPOCH = 0, -1
LAST_EPOCH = 2**31 - 1
_MOST_SESSIONS = 16
"""Limit of the sessions kept for one connection; a client has one per broker."""

Partition: TypeAlias = tuple[str | UUID, int]
"""Name or id of the topic, as in the messages, and number of the partition."""


@dataclass(slots=True)
class Told:
    """The last response for a partition: the next may omit it if nothing changed."""

    high_watermark: int
    log_start_offset: int

    @classmethod
    def of(cls, partition: Any) -> Told:
        """Return the state of a partition in a response."""
        return cls(partition.high_watermark, partition.get("log_start_offset", -1))


@dataclass(slots=True)
class Session:
    """
    A fetch session.

    Attributes:
        epoch: The epoch that the next request must have.
        offsets: The requested offset of each partition.
        told: The last response for each partition, while it is without an error.
    """

    epoch: int = 1
    offsets: dict[Partition, int] = field(default_factory=dict)
    told: dict[Partition, Told] = field(default_factory=dict)

    def after(self) -> int:
        """Return the next epoch; 0 is skipped when it wraps."""
        return 1 if self.epoch == LAST_EPOCH else self.epoch + 1


@dataclass(slots=True)
class Fetching:
    """
    One Fetch exchange.

    Attributes:
        is_full: Whether the request lists all its partitions.
        named: The requested offsets of the listed partitions.
        session: The session that the request continues, in its state before the request; None where
            there is none, or its beginning was not captured.
        session_id: Session id of the request.
        session_epoch: Session epoch of the request.
    """

    is_full: bool
    named: dict[Partition, int]
    session: Session | None
    session_id: int
    session_epoch: int

    def offset_of(self, partition: Partition) -> int | None:
        """Return the requested offset of a partition; None where it was not captured."""
        found = self.named.get(partition)
        if found is None and self.session is not None:
            return self.session.offsets.get(partition)
        return found


@dataclass(frozen=True, slots=True)
class _Effect:
    """
    Changes of an exchange to the sessions of its connection, applied at the next exchange.

    Attributes:
        ends: The session that ends.
        begins: Id of the new session.
        goes_on: The session that continues.
        asked: The offsets requested from now on.
        told: Response per partition; None after an error, when the broker resends all.
        forgotten: The partitions that leave the session.
    """

    ends: int | None = None
    begins: int = 0
    goes_on: Session | None = None
    asked: dict[Partition, int] = field(default_factory=dict)
    told: dict[Partition, Told | None] = field(default_factory=dict)
    forgotten: tuple[Partition, ...] = ()


class _Owners(Newest[tuple[str, int], int]):
    """The connection that uses a session, by broker and session id."""

    def are_others(self, turn: Turn, session_id: int) -> bool:
        """Record the connection that uses a session; return whether it was another before."""
        key, number = (turn.talk.broker.address, session_id), turn.talk.number
        before = self.get(key, number)
        self[key] = number
        return before != number


class _Fetches:
    """The sessions of a connection, and its newest exchange, without its bytes."""

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
    """Return the changes of an exchange to the sessions."""
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
    """Return the Fetch state of an exchange; None where its request can't be read."""
    return turn.talk.state(_Fetches).at(turn)


def partitions(topics: Any) -> list[tuple[Partition, Any]]:
    """Return the keys and entries of the partitions in a request or a response."""
    return [
        ((_key(topic), each.get("partition", each.get("partition_index"))), each)
        for topic in topics or ()
        for each in topic.partitions or ()
    ]


def _key(topic: Any) -> str | UUID:
    name: str | UUID | None = topic.get("topic")
    found: str | UUID = topic.topic_id if name is None else name
    return found


def replica_of(asked: object) -> int:
    """Return the replica id of a Fetch request."""
    state = getattr(asked, "replica_state", None)
    found: int = getattr(asked, "replica_id", -1) if state is None else state.replica_id
    return found
