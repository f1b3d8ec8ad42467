"""
Fetch sessions: the offsets of each request, given by the request itself or by its session.

An incremental request (KIP-227) names only the partitions that changed; the offsets of the others
were sent before, on the same connection. A `FetchSession` reconstructs the broker's session state
from the requests, and holds the last response for each partition.

Source: FetchMetadata.java, FetchSession.scala; KIP-227.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from uuid import UUID
from weakref import ref

from construct import Container

from conform.evidence.bounded_memory import BoundedDict
from conform.evidence.observation import Observation

FIRST_WITH_SESSIONS = 7
FIRST_WITH_TOPIC_IDS = 13
INITIAL_EPOCH, FINAL_EPOCH = 0, -1
LAST_EPOCH = 2**31 - 1
_MAX_SESSIONS = 16
"""Limit of the sessions kept for one connection; a client has one per broker."""

Partition: TypeAlias = tuple[str | UUID, int]
"""Name or id of the topic, as in the messages, and number of the partition."""


@dataclass(slots=True)
class PartitionOffsets:
    """The last response for a partition: the next may omit it if nothing changed."""

    high_watermark: int
    log_start_offset: int

    @classmethod
    def of(cls, partition: Any) -> PartitionOffsets:
        """Return the state of a partition in a response."""
        return cls(partition.high_watermark, partition.get("log_start_offset", -1))


@dataclass(slots=True)
class FetchSession:
    """
    A fetch session.

    Attributes:
        epoch: The epoch that the next request must have.
        offsets: The requested offset of each partition.
        offsets_in_responses: The last response for each partition, while it is without an error.
    """

    epoch: int = 1
    offsets: dict[Partition, int] = field(default_factory=dict)
    offsets_in_responses: dict[Partition, PartitionOffsets] = field(default_factory=dict)

    def next_epoch(self) -> int:
        """Return the next epoch; 0 is skipped when it wraps."""
        return 1 if self.epoch == LAST_EPOCH else self.epoch + 1


@dataclass(slots=True)
class FetchRequest:
    """
    One Fetch exchange.

    Attributes:
        is_full: Whether the request lists all its partitions.
        offsets: The requested offsets of the listed partitions.
        session: The session that the request continues, in its state before the request; None where
            there is none, or its beginning was not captured.
        session_id: Session id of the request.
        session_epoch: Session epoch of the request.
    """

    is_full: bool
    offsets: dict[Partition, int]
    session: FetchSession | None
    session_id: int
    session_epoch: int

    def offset_of(self, partition: Partition) -> int | None:
        """Return the requested offset of a partition; None where it was not captured."""
        found = self.offsets.get(partition)
        if found is None and self.session is not None:
            return self.session.offsets.get(partition)
        return found


@dataclass(frozen=True, slots=True)
class _SessionChange:
    """
    Changes of an exchange to the sessions of its connection, applied at the next exchange.

    Attributes:
        closed_id: The session that ends.
        opened_id: Id of the new session.
        continued: The session that continues.
        fetch_offsets: The offsets requested from now on.
        response_offsets: Response per partition; None after an error, when the broker resends all.
        forgotten: The partitions that leave the session.
    """

    closed_id: int | None = None
    opened_id: int = 0
    continued: FetchSession | None = None
    fetch_offsets: dict[Partition, int] = field(default_factory=dict)
    response_offsets: dict[Partition, PartitionOffsets | None] = field(default_factory=dict)
    forgotten: tuple[Partition, ...] = ()


class _SessionOwners(BoundedDict[tuple[str, int], int]):
    """The connection that uses a session, by broker and session id."""

    def is_of_other_client(self, observation: Observation, session_id: int) -> bool:
        """Record the connection that uses a session; return whether it was another before."""
        key, number = (
            (observation.connection.broker.address, session_id),
            observation.connection.number,
        )
        before = self.get(key, number)
        self[key] = number
        return before != number


class _FetchHistory:
    """The sessions of a connection, and its newest exchange, without its bytes."""

    def __init__(self) -> None:
        self._current: Callable[[], Observation | None] = lambda: None
        self._request: FetchRequest | None = None
        self._pending_change = _SessionChange()
        self._sessions: BoundedDict[int, FetchSession] = BoundedDict(_MAX_SESSIONS)

    def at(self, observation: Observation) -> FetchRequest | None:
        if self._current() is not observation:
            self._apply(self._pending_change)
            self._current, self._request, self._pending_change = (
                ref(observation),
                None,
                _SessionChange(),
            )
            if (
                observation.request_body is None
                or observation.version is None
                or observation.connection.gap_reason
            ):
                self._sessions.clear()
            if observation.request_body is not None and observation.version is not None:
                self._request = self._resolve(
                    observation, observation.request_body, observation.version
                )
                self._pending_change = _session_change(observation, self._request)
        return self._request

    def _resolve(self, observation: Observation, request: Container, version: int) -> FetchRequest:
        named = {key: each.fetch_offset for key, each in partitions_of(request.topics)}
        if version < FIRST_WITH_SESSIONS:
            return FetchRequest(True, named, None, 0, FINAL_EPOCH)
        epoch = request.session_epoch
        is_full = epoch in (INITIAL_EPOCH, FINAL_EPOCH)
        session = None
        if request.session_id and observation.capture_state.state(
            _SessionOwners
        ).is_of_other_client(observation, request.session_id):
            self._sessions.pop(request.session_id, None)
        elif not is_full:
            session = self._sessions.get(request.session_id)
        return FetchRequest(is_full, named, session, request.session_id, epoch)

    def _apply(self, change: _SessionChange) -> None:
        if change.closed_id is not None:
            self._sessions.pop(change.closed_id, None)
        session = change.continued
        if change.opened_id:
            session = self._sessions[change.opened_id] = FetchSession(epoch=0)
        if session is None:
            return
        session.epoch = session.next_epoch()
        session.offsets.update(change.fetch_offsets)
        for key in change.forgotten:
            session.offsets.pop(key, None)
            session.offsets_in_responses.pop(key, None)
        for key, told in change.response_offsets.items():
            if told is None:
                session.offsets_in_responses.pop(key, None)
            else:
                session.offsets_in_responses[key] = told


def _session_change(observation: Observation, fetching: FetchRequest) -> _SessionChange:
    """Return the changes of an exchange to the sessions."""
    asked, told = observation.request_body, observation.response_body
    if told is None or asked is None or told.get("error_code"):
        return _SessionChange(closed_id=fetching.session_id)
    said = {
        key: None if each.error_code else PartitionOffsets.of(each)
        for key, each in partitions_of(told.responses)
    }
    if fetching.is_full:
        begins = 0 if observation.connection.gap_reason else told.get("session_id", 0)
        return _SessionChange(fetching.session_id, begins, None, fetching.offsets, said)
    if fetching.session is None:
        return _SessionChange()
    forgotten = tuple(
        (_topic_key(topic), number)
        for topic in asked.forgotten_topics_data or ()
        for number in topic.partitions or ()
    )
    return _SessionChange(None, 0, fetching.session, fetching.offsets, said, forgotten)


def fetch_request_of(observation: Observation) -> FetchRequest | None:
    """Return the Fetch state of an exchange; None where its request can't be read."""
    return observation.connection.state(_FetchHistory).at(observation)


def partitions_of(topics: Any) -> list[tuple[Partition, Any]]:
    """Return the keys and entries of the partitions in a request or a response."""
    return [
        ((_topic_key(topic), each.get("partition", each.get("partition_index"))), each)
        for topic in topics or ()
        for each in topic.partitions or ()
    ]


def _topic_key(topic: Any) -> str | UUID:
    name: str | UUID | None = topic.get("topic")
    found: str | UUID = topic.topic_id if name is None else name
    return found


def replica_id_of(request: object) -> int:
    """Return the replica id of a Fetch request."""
    state = getattr(request, "replica_state", None)
    found: int = getattr(request, "replica_id", -1) if state is None else state.replica_id
    return found
