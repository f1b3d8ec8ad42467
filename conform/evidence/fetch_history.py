"""
Fetch sessions: the offsets of each request, from the request itself or from its session.

An incremental request (KIP-227) lists only the partitions that changed; the offsets of the others
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
"""Limit of the retained sessions of a connection; a client has one per broker."""

Partition: TypeAlias = tuple[str | UUID, int]
"""Name or id of the topic, as in the messages, and number of the partition."""


@dataclass(slots=True)
class PartitionOffsets:
    """The last response for a partition; the next may omit the partition if nothing changed."""

    high_watermark: int
    log_start_offset: int

    @classmethod
    def of(cls, partition: Any) -> PartitionOffsets:
        """Return the offsets of a partition in a response."""
        return cls(partition.high_watermark, partition.get("log_start_offset", -1))


@dataclass(slots=True)
class FetchSession:
    """
    A fetch session.

    Attributes:
        epoch: The epoch that the next request must have.
        offsets: The requested offset of each partition.
        offsets_in_responses: The last response for each partition, unless it had an error.
    """

    epoch: int = 1
    offsets: dict[Partition, int] = field(default_factory=dict)
    offsets_in_responses: dict[Partition, PartitionOffsets] = field(default_factory=dict)

    def next_epoch(self) -> int:
        """Return the next epoch; when it wraps it skips 0."""
        return 1 if self.epoch == LAST_EPOCH else self.epoch + 1


@dataclass(slots=True)
class FetchRequest:
    """
    One Fetch request.

    Attributes:
        is_full: Whether the request lists all its partitions.
        offsets: The requested offsets of the listed partitions.
        session: The session that the request continues, in its state before the request; None
            without one, or if its beginning was not captured.
        session_id: Session id of the request.
        session_epoch: Session epoch of the request.
    """

    is_full: bool
    offsets: dict[Partition, int]
    session: FetchSession | None
    session_id: int
    session_epoch: int

    def offset_of(self, partition: Partition) -> int | None:
        """Return the requested offset of a partition; None if it was not captured."""
        found = self.offsets.get(partition)
        if found is None and self.session is not None:
            return self.session.offsets.get(partition)
        return found


@dataclass(frozen=True, slots=True)
class _SessionChange:
    """
    Changes that an exchange makes to the sessions of its connection, applied at the next exchange.

    Attributes:
        closed_id: Id of the session that ends; None for none.
        opened_id: Id of the new session; 0 for none.
        continued: The session that continues.
        fetch_offsets: Requested offsets to add to the session.
        response_offsets: Response for each partition; None for an error: the broker sends the
            partition again.
        forgotten: The partitions that the session drops.
    """

    closed_id: int | None = None
    opened_id: int = 0
    continued: FetchSession | None = None
    fetch_offsets: dict[Partition, int] = field(default_factory=dict)
    response_offsets: dict[Partition, PartitionOffsets | None] = field(default_factory=dict)
    forgotten: tuple[Partition, ...] = ()


class _SessionOwners(BoundedDict[tuple[str, int], int]):
    """Number of the connection that uses a session, by broker and session id."""

    def is_of_other_client(self, observation: Observation, session_id: int) -> bool:
        """Record the connection that uses a session; return whether another used it before."""
        number = observation.connection.number
        key = observation.connection.broker.address, session_id
        before = self.get(key, number)
        self[key] = number
        return before != number


class _FetchHistory:
    """The sessions of a connection, and the state of its newest exchange."""

    def __init__(self) -> None:
        self._current: Callable[[], Observation | None] = lambda: None
        self._request: FetchRequest | None = None
        self._pending_change = _SessionChange()
        self._sessions: BoundedDict[int, FetchSession] = BoundedDict(_MAX_SESSIONS)

    def request_of(self, observation: Observation) -> FetchRequest | None:
        if self._current() is not observation:
            self._apply(self._pending_change)
            self._current, self._request = ref(observation), None
            self._pending_change = _SessionChange()
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
        offsets = {key: each.fetch_offset for key, each in partitions_of(request.topics)}
        if version < FIRST_WITH_SESSIONS:
            return FetchRequest(True, offsets, None, 0, FINAL_EPOCH)
        epoch = request.session_epoch
        is_full = epoch in (INITIAL_EPOCH, FINAL_EPOCH)
        session = None
        owners = observation.capture_state.state(_SessionOwners)
        if request.session_id and owners.is_of_other_client(observation, request.session_id):
            self._sessions.pop(request.session_id, None)
        elif not is_full:
            session = self._sessions.get(request.session_id)
        return FetchRequest(is_full, offsets, session, request.session_id, epoch)

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
        for key, offsets in change.response_offsets.items():
            if offsets is None:
                session.offsets_in_responses.pop(key, None)
            else:
                session.offsets_in_responses[key] = offsets


def _session_change(observation: Observation, fetch_request: FetchRequest) -> _SessionChange:
    """Return the changes that an exchange makes to the sessions."""
    request, response = observation.request_body, observation.response_body
    if response is None or request is None or response.get("error_code"):
        return _SessionChange(closed_id=fetch_request.session_id)
    response_offsets = {
        key: None if each.error_code else PartitionOffsets.of(each)
        for key, each in partitions_of(response.responses)
    }
    if fetch_request.is_full:
        opened_id = 0 if observation.connection.gap_reason else response.get("session_id", 0)
        return _SessionChange(
            fetch_request.session_id, opened_id, None, fetch_request.offsets, response_offsets
        )
    if fetch_request.session is None:
        return _SessionChange()
    forgotten = tuple(
        (_topic_key(topic), number)
        for topic in request.forgotten_topics_data or ()
        for number in topic.partitions or ()
    )
    return _SessionChange(
        None, 0, fetch_request.session, fetch_request.offsets, response_offsets, forgotten
    )


def fetch_request_of(observation: Observation) -> FetchRequest | None:
    """Return the Fetch request of an exchange; None if it can't be decoded."""
    return observation.connection.state(_FetchHistory).request_of(observation)


def partitions_of(topics: Any) -> list[tuple[Partition, Any]]:
    """Return each partition of a request or a response, with its key."""
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
