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
from typing import Any
from uuid import UUID
from weakref import ref

from conform.evidence.bounded_memory import BoundedDict
from conform.evidence.observation import Observation
from conform.registry.fetch_content import FetchContent, Partition, PartitionOffsets
from conform.registry.screened_columns import FINAL_EPOCH, INITIAL_EPOCH

FIRST_WITH_SESSIONS = 7
FIRST_WITH_TOPIC_IDS = 13
LAST_EPOCH = 2**31 - 1
_MAX_SESSIONS = 16
"""Limit of the retained sessions of a connection; a client has one per broker."""


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
        content: What the session takes from the exchange: requested offsets, answers, of which
            the broker sends those with an error again, and what it forgets.
    """

    closed_id: int | None = None
    opened_id: int = 0
    continued: FetchSession | None = None
    content: FetchContent | None = None


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
            content = observation.fetch or _decoded_content(observation)
            if content is None or observation.connection.gap_reason:
                self._sessions.clear()
            if content is not None:
                self._request = self._resolve(observation, content)
                has_gap = bool(observation.connection.gap_reason)
                self._pending_change = _session_change(content, self._request, has_gap)
        return self._request

    def _resolve(self, observation: Observation, content: FetchContent) -> FetchRequest:
        number, epoch = content.session_id, content.epoch
        is_full = epoch in (INITIAL_EPOCH, FINAL_EPOCH)
        session = None
        if number and observation.capture_state.state(_SessionOwners).is_of_other_client(
            observation, number
        ):
            self._sessions.pop(number, None)
        elif not is_full:
            session = self._sessions.get(number)
        return FetchRequest(is_full, content.offsets, session, number, epoch)

    def _apply(self, change: _SessionChange) -> None:
        if change.closed_id is not None:
            self._sessions.pop(change.closed_id, None)
        session = change.continued
        if change.opened_id:
            session = self._sessions[change.opened_id] = FetchSession(epoch=0)
        if session is None or change.content is None:
            return
        session.epoch = session.next_epoch()
        session.offsets.update(change.content.offsets)
        for key in change.content.forgotten:
            session.offsets.pop(key, None)
            session.offsets_in_responses.pop(key, None)
        for key, offsets in change.content.answers:
            if offsets is None:
                session.offsets_in_responses.pop(key, None)
            else:
                session.offsets_in_responses[key] = offsets


def _session_change(
    content: FetchContent, fetch_request: FetchRequest, has_gap: bool
) -> _SessionChange:
    """Return the changes that an exchange makes to the sessions."""
    if content.answered_id is None:
        return _SessionChange(closed_id=fetch_request.session_id)
    if fetch_request.is_full:
        opened_id = 0 if has_gap else content.answered_id
        opened = content._replace(forgotten=())  # a new session has nothing to forget
        return _SessionChange(fetch_request.session_id, opened_id, None, opened)
    if fetch_request.session is None:
        return _SessionChange()
    return _SessionChange(None, 0, fetch_request.session, content)


def _decoded_content(observation: Observation) -> FetchContent | None:
    """Return what the decoded messages say; None without a request."""
    request, response = observation.request_body, observation.response_body
    if request is None or observation.version is None:
        return None
    answered_id, answers = None, []
    if response is not None and not response.get("error_code"):
        answered_id, answers = response.get("session_id", 0), partitions_of(response.responses)
    return FetchContent(
        request.get("session_id", 0),
        request.get("session_epoch", FINAL_EPOCH),
        {key: each.fetch_offset for key, each in partitions_of(request.topics)},
        tuple(
            (_topic_key(topic), number)
            for topic in request.get("forgotten_topics_data") or ()
            for number in topic.partitions or ()
        ),
        answered_id,
        [(key, None if each.error_code else offsets_in(each)) for key, each in answers],
        [],
    )


def offsets_in(partition: Any) -> PartitionOffsets:
    """Return the offsets of a partition in a response."""
    return PartitionOffsets(partition.high_watermark, partition.get("log_start_offset", -1))


def fetch_request_of(observation: Observation) -> FetchRequest | None:
    """Return the Fetch request of an exchange; None if it can't be decoded."""
    return observation.connection.state(_FetchHistory).request_of(observation)


def keeps_session(observation: Observation) -> bool:
    """
    Return whether columns show that a Fetch continues its session as all rules ask.

    It has the next epoch; each partition of the response was requested, in the session or now,
    begins at the requested offset, and is new: it has records, or its offsets changed. The columns
    of the window show the rest.
    """
    content, fetch_request = observation.fetch, fetch_request_of(observation)
    if content is None or fetch_request is None:
        return False
    session = fetch_request.session
    if not fetch_request.is_full and (
        session is None
        or content.epoch != session.epoch
        or content.answered_id not in (0, content.session_id)
    ):
        return False
    for (key, offsets), first_end in zip(content.answers, content.first_ends, strict=True):
        requested = fetch_request.offset_of(key)
        if requested is None or offsets is None or offsets.log_start_offset > requested:
            return False
        if first_end is not None:
            if first_end < requested:
                return False
        elif session is not None and session.offsets_in_responses.get(key) == offsets:
            return False
    return True


def first_ends_in_session(observation: Observation) -> list[tuple[int, int | None]] | None:
    """
    Return what columns show of the batches in a response: a pair for each partition with records.

    It is the end of the first batch, and the requested offset; None if that was not captured. None
    if columns do not show it, or if a batch ends before the offset.
    """
    content, fetch_request = observation.fetch, fetch_request_of(observation)
    if content is None or fetch_request is None:
        return None
    found = [
        (first_end, fetch_request.offset_of(key))
        for (key, _), first_end in zip(content.answers, content.first_ends, strict=True)
        if first_end is not None
    ]
    is_covered = all(requested is None or end >= requested for end, requested in found)
    return found if is_covered else None


def starts_in_session(observation: Observation) -> int | None:
    """
    Return the number of partitions in a response, as columns show it.

    None if columns do not show it, or if the log of one begins above the requested offset.
    """
    content, fetch_request = observation.fetch, fetch_request_of(observation)
    if content is None or fetch_request is None:
        return None
    for key, offsets in content.answers:
        requested = fetch_request.offset_of(key)
        if offsets is None or (requested is not None and offsets.log_start_offset > requested):
            return None
    return len(content.answers)


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
