"""
Plain Fetch exchanges of a window, in columns: what a plan needs of them, without decoding.

Consumers at the end of their logs send most requests of a cluster, and nearly all are alike:
answered without errors, with batches of magic 2 or none. All others are left to the codecs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeAlias
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from dissector.engine.records.batch_scanner import find_batches
from dissector.engine.records.batch_table import VALID, last_offset_deltas
from dissector.engine.records.produce_results import last_marked
from dissector.engine.records.record_locator import number_topics
from dissector.engine.tables.exchange_table import ANSWERED, Exchanges, Frames, Ints
from dissector.engine.tape import tape
from dissector.protocol.api import Kind
from dissector.protocol.facts import NO_ID
from dissector.protocol.headers import FETCH
from dissector.protocol.program import FieldRef, field_roles, programs
from dissector.protocol.records.layout import CONTROL
from replay.order.read_write_sets import Log, ReadWriteSets

Bools: TypeAlias = NDArray[np.bool_]

(_OTHER, _REPLICA, _SESSION, _EPOCH, _TOPIC, _TOPIC_ID, _PARTITION, _OFFSET) = range(8)
(_NOT_NULL, _ABSENT, _ZERO, _RECORDS) = range(8, 12)

_PATHS: dict[tuple[Kind, str], int] = {
    ("request", "cluster_id"): _ABSENT,
    ("request", "replica_state.replica_id"): _REPLICA,
    ("request", "replica_id"): _REPLICA,
    ("request", "session_id"): _SESSION,
    ("request", "session_epoch"): _EPOCH,
    ("request", "topics"): _NOT_NULL,
    ("request", "topics.topic_id"): _TOPIC_ID,
    ("request", "topics.topic"): _TOPIC,
    ("request", "topics.partitions"): _NOT_NULL,
    ("request", "topics.partitions.partition"): _PARTITION,
    ("request", "topics.partitions.fetch_offset"): _OFFSET,
    ("request", "forgotten_topics_data"): _ZERO,
    ("request", "rack_id"): _NOT_NULL,
    ("response", "error_code"): _ZERO,
    ("response", "session_id"): _SESSION,
    ("response", "responses"): _NOT_NULL,
    ("response", "responses.topic_id"): _TOPIC_ID,
    ("response", "responses.topic"): _TOPIC,
    ("response", "responses.partitions"): _NOT_NULL,
    ("response", "responses.partitions.partition_index"): _PARTITION,
    ("response", "responses.partitions.error_code"): _ZERO,
    ("response", "responses.partitions.records"): _RECORDS,
    ("response", "node_endpoints"): _ABSENT,
}
"""Kind and path of a field -> what it is here, or what it must be in a plain message."""

PLAIN_FETCH = -2
"""The shape of plain Fetch exchanges."""

_NOTHING: set[int] = set()

REQUESTED, ANSWERED_EMPTY, ANSWERED_WITH_RECORDS = range(3)
_KINDS, _PLACE_BYTES = 3, 4


class Place(NamedTuple):
    """
    A partition in a request, or in a response.

    Attributes:
        kind: REQUESTED, ANSWERED_EMPTY or ANSWERED_WITH_RECORDS.
        topic: Name or id of the topic.
        partition: The number of the partition.
    """

    kind: int
    topic: str | UUID
    partition: int


class PlainFetch(NamedTuple):
    """
    A plain Fetch exchange.

    Attributes:
        session: Captured session id and epoch of the request; None without the fields.
        given_session: The session id of the response.
        places: Numbers of its places, in `FetchReader.places`.
        reads: Number of a place, and the last offset that must be in its log.
        ended_producers: Producers whose transactions end in its records.
    """

    session: tuple[int, int] | None
    given_session: int
    places: bytes
    reads: list[tuple[int, int]]
    ended_producers: set[int]


class FetchReader:
    """
    Reads plain Fetch exchanges, one window after another.

    Attributes:
        places: All places so far, by number.
    """

    def __init__(self) -> None:
        self.places: list[Place] = []
        self._numbers: dict[Place, int] = {}
        self._logs: dict[int, int] = {}

    def read(self, table: Exchanges) -> dict[int, PlainFetch]:
        """Return the plain Fetch exchanges of a window, by their rows."""
        requests, responses = table.request, table.response
        wanted = (table.status == ANSWERED) & (table.api_key == FETCH) & ~table.token
        wanted &= requests.captured_bytes == requests.size
        wanted &= responses.captured_bytes == responses.size
        rows = np.flatnonzero(wanted)
        if not len(rows):
            return {}
        request = _Messages(table, rows, "request")
        response = _Messages(table, rows, "response")
        asked = self._partitions(request, _OFFSET)
        given = self._partitions(response, _RECORDS)
        last, is_readable, ends_of = _last_offsets(table, given)
        ended: dict[int, set[int]] = {}
        for field, producer in ends_of:
            ended.setdefault(int(given.message[field]), set()).add(producer)
        is_plain = request.is_plain & response.is_plain
        is_plain[asked.message[asked.is_odd]] = False
        is_plain[given.message[given.is_odd | ~is_readable]] = False
        asked_at = self._number(asked, np.full(len(asked.message), REQUESTED))
        kind = np.where(given.value > 0, ANSWERED_WITH_RECORDS, ANSWERED_EMPTY)
        given_at = self._number(given, kind)
        message = np.concatenate((asked.message, given.message))
        places = np.concatenate((asked_at, given_at))
        offsets = np.concatenate((asked.value - 1, last))
        order = np.argsort(message, kind="stable")
        ends = np.searchsorted(message[order], np.arange(len(rows)), "right").tolist()
        places, offsets = places[order].astype(np.int32), offsets[order]
        has_offset = offsets >= 0
        reads = list(zip(places[has_offset].tolist(), offsets[has_offset].tolist(), strict=True))
        reads_until = np.concatenate(([0], np.cumsum(has_offset))).tolist()
        encoded, rows_of, are_plain = places.tobytes(), rows.tolist(), is_plain.tolist()
        sessions = request.values(_SESSION).tolist(), request.values(_EPOCH).tolist()
        given_session, has_session = response.values(_SESSION).tolist(), request.has(_EPOCH)
        found: dict[int, PlainFetch] = {}
        begin = 0
        for at, end in enumerate(ends):
            if are_plain[at]:
                found[rows_of[at]] = PlainFetch(
                    (sessions[0][at], sessions[1][at]) if has_session[at] else None,
                    given_session[at],
                    encoded[begin * _PLACE_BYTES : end * _PLACE_BYTES],
                    reads[reads_until[begin] : reads_until[end]],
                    ended.get(at, _NOTHING),
                )
            begin = end
        return found

    def read_write_sets(self, fetch: PlainFetch) -> ReadWriteSets:
        """Return the read and write sets of a Fetch, without its offsets."""
        sets = ReadWriteSets()
        for number in np.frombuffer(fetch.places, np.int32).tolist():
            kind, topic, partition = self.places[number]
            if kind == REQUESTED:
                sets.record_partitions(topic, partition + 1)
            else:
                sets.reads.add(("start", topic, partition))
            if kind != ANSWERED_EMPTY:
                sets.reads.add(("topic", topic))
        return sets

    def reads(self, fetch: PlainFetch, number: Callable[[Log], int]) -> Iterable[tuple[int, int]]:
        """
        Return the logs of a Fetch, and the last offset that must be in each.

        Args:
            fetch: The Fetch.
            number: Returns the number of a log; asked again after `begin_anew`.
        """
        last: dict[int, int] = {}
        for place, offset in fetch.reads:
            log = self._logs.get(place)
            if log is None:
                log = self._logs[place] = number(self.places[place][1:])
            if offset > last.get(log, -1):
                last[log] = offset
        return last.items()

    def begin_anew(self) -> None:
        """Forget which logs partitions have: a topic was deleted, and may be created again."""
        self._logs.clear()

    def _partitions(self, messages: _Messages, last: int) -> _Partitions:
        """Return the partitions of messages; `last` is the category of their last field."""
        category, fields = messages.category, messages.fields
        rows = np.flatnonzero(category == last)
        partition = fields.value[last_marked(category == _PARTITION)[rows]]
        topic_rows = last_marked((category == _TOPIC) | (category == _TOPIC_ID))[rows]
        codes, topics = number_topics(
            messages.table, fields, topic_rows, category[topic_rows] == _TOPIC_ID
        )
        is_nameless = np.array([not each or each == NO_ID for each in topics], bool)
        is_odd = (partition < 0) | (is_nameless[codes] if len(codes) else np.zeros(0, bool))
        message = fields.message[rows].astype(np.int64)
        value, start = fields.value[rows], fields.start[rows]
        return _Partitions(message, codes, topics, partition, value, start, is_odd)

    def _number(self, partitions: _Partitions, kind: Ints) -> Ints:
        """Return the number of each place."""
        topics_and_kinds = partitions.topic * _KINDS + kind
        distinct, at = np.unique(topics_and_kinds << 32 | partitions.partition, return_inverse=True)
        numbers = []
        for each in distinct.tolist():
            topic, of = divmod(each >> 32, _KINDS)
            place = Place(of, partitions.topics[topic], each & 0xFFFF_FFFF)
            number = self._numbers.setdefault(place, len(self.places))
            if number == len(self.places):
                self.places.append(place)
            numbers.append(number)
        found: Ints = np.array(numbers, np.int64)[at]
        return found


class _Partitions(NamedTuple):
    """Partitions of messages: in requests with offsets, in responses with sizes of records."""

    message: Ints
    topic: Ints
    topics: list[str | UUID]
    partition: Ints
    value: Ints
    start: Ints
    is_odd: Bools


class _Messages:
    """The messages of one side, on a tape."""

    def __init__(self, table: Exchanges, rows: Ints, kind: Kind) -> None:
        frames: Frames = table.request if kind == "request" else table.response
        starts = frames.start[rows]
        versions = table.api_version[rows]
        distinct, at = np.unique(versions, return_inverse=True)
        first = [programs().start(FETCH, version, kind) for version in distinct.tolist()]
        steps = np.array(first, np.int64)[at.ravel()]
        roles, ends = field_roles(_category), starts + frames.captured_bytes[rows]
        self.table = table
        self.fields = tape.read(
            table.data, table.carry_over, starts, ends, steps, programs(), roles
        )
        self.category = roles[self.fields.field].astype(np.int64)
        self.is_plain: Bools = self.fields.state == tape.FITS
        self.is_plain[self.fields.message[self._is_odd()]] = False

    def _is_odd(self) -> Bools:
        """Return the rows of values that a plain message does not have."""
        category, value = self.category, self.fields.value
        is_null = value == tape.NULL
        odd: Bools = (category == _ABSENT) | ((category == _ZERO) & (value != 0))
        odd |= np.isin(category, (_NOT_NULL, _TOPIC)) & is_null
        odd |= (category == _REPLICA) & (value >= 0)
        return odd

    def values(self, category: int) -> Ints:
        """Return the value of a field of each message; 0 without one."""
        rows = np.flatnonzero(self.category == category)
        found = np.zeros(len(self.is_plain), np.int64)
        found[self.fields.message[rows]] = self.fields.value[rows]
        return found

    def has(self, category: int) -> Bools:
        """Return whether each message has a field."""
        found = np.zeros(len(self.is_plain), bool)
        found[self.fields.message[self.category == category]] = True
        return found


def _last_offsets(
    table: Exchanges, given: _Partitions
) -> tuple[Ints, Bools, list[tuple[int, int]]]:
    """
    Return what `records` fields hold.

    Returns:
        The last offset of each, or -1; whether it is readable; field and producer of each end of a
        transaction.
    """
    length = np.maximum(given.value, 0)
    may_be_cut = np.ones(len(length), bool)
    batches = find_batches(table.data, table.carry_over, given.start, length, may_be_cut)
    is_readable = batches.state == VALID
    is_readable[batches.field[batches.magic != 2]] = False
    is_control = (batches.attributes & CONTROL) != 0
    # A batch that is cut off counts for nothing here, but for the codecs.
    ends = given.start.copy()
    np.maximum.at(ends, batches.field, batches.end)
    is_readable &= ends == given.start + length
    last = np.full(len(length), -1, np.int64)
    np.maximum.at(
        last, batches.field, batches.base_offset + last_offset_deltas(table, batches.start)
    )
    ended = batches.field[is_control].tolist(), batches.producer_id[is_control].tolist()
    return last, is_readable, list(zip(*ended, strict=True))


def _category(ref: FieldRef) -> int:
    if ref.key != FETCH:
        return _OTHER
    known: Any = _PATHS.get((ref.kind, ref.path), _OTHER)
    return int(known)
