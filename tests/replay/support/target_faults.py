"""Faults of a target that a replay must detect, and a capture affected by each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

from construct import Container

from cluster.client.broker_connection import CLIENT_ID
from dissector.protocol.apis import KEYS
from dissector.protocol.error_codes import error_code
from dissector.protocol.messages import Message
from dissector.protocol.records import RecordBatch, build_records, parse_records
from dissector.protocol.records.layout import TIMESTAMP_TYPE
from tests.default_frames import request, response, sized
from tests.replay.support.fault_proxy import Fault
from tests.replay.support.produce_messages import Written, produce_request, produce_response
from tests.replay.support.replay_captures import exchange, saved
from tests.tcp_captures import Wire

WRITES, RECORDS, AT_ONCE = 24, 5, 4
POLLS = 4
READ, UNREAD, GROUP = "orders", "audit", "g"
COMMITTED = 7
LEFT_OUT = 35
_PRODUCE, _FETCH = 9, 11
_NOT_NOW_MS = 1_400_000_000_000
_HEADERS = (("trace", b"1"),)


def capture(folder: Path, polls: int = POLLS, aborted: list[Any] | None = None) -> str:
    """
    Producers of two logs, a consumer of one, and a group with a committed offset.

    Args:
        folder: Takes the file.
        polls: Number of responses with the records.
        aborted: Aborted transactions in the responses.
    """
    wire = Wire()
    written: dict[str, list[bytes]] = {READ: [], UNREAD: []}
    for topic in (READ, UNREAD):
        connection = wire.connect(50000 + wire.connections).syn()
        for start in range(0, WRITES, AT_ONCE):
            numbers = range(start, start + AT_ONCE)
            for number in numbers:
                values = [_value(topic, number, at) for at in range(RECORDS)]
                batch = Written(topic, 0, values)
                written[topic].append(_at(batch.records(), number * RECORDS))
                connection.client(
                    sized(produce_request(_PRODUCE, [batch], number + 2, timeout_ms=5000))
                )
            for number in numbers:
                answer = produce_response(
                    _PRODUCE,
                    [(topic, 0, number * RECORDS)],
                    number + 2,
                    log_append_time_ms=-1,
                    log_start_offset=0,
                )
                connection.broker(sized(answer))
    _read(wire, written[READ], polls, aborted)
    commit(wire)
    return saved(folder, wire)


def _value(topic: str, number: int, at: int) -> bytes:
    return b"%s %d %d" % (topic.encode(), number, at)


def _at(records: bytes, offset: int) -> bytes:
    return offset.to_bytes(8, "big") + records[8:]


def _read(wire: Wire, batches: list[bytes], polls: int, aborted: list[Any] | None) -> None:
    connection, key, each = (
        wire.connect(50000 + wire.connections).syn(),
        KEYS["Fetch"],
        WRITES // polls,
    )
    for poll in range(polls):
        first = poll * each * RECORDS
        wanted = {
            "partition": 0,
            "current_leader_epoch": -1,
            "fetch_offset": first,
            "log_start_offset": -1,
            "partition_max_bytes": 1 << 20,
        }
        asks = {
            "replica_id": -1,
            "max_wait_ms": 100,
            "min_bytes": 1,
            "max_bytes": 1 << 20,
            "session_epoch": -1,
            "topics": [{"topic": READ, "partitions": [wanted]}],
        }
        end = WRITES * RECORDS
        given = {
            "partition_index": 0,
            "error_code": 0,
            "high_watermark": end,
            "last_stable_offset": end,
            "log_start_offset": 0,
            "aborted_transactions": aborted,
            "preferred_read_replica": -1,
            "records": b"".join(batches[poll * each : (poll + 1) * each]),
        }
        gives = {"responses": [{"topic": READ, "partitions": [given]}]}
        exchange(
            connection,
            request(key, _FETCH, poll + 2, **asks),
            response(key, _FETCH, poll + 2, **gives),
        )


def commit(wire: Wire) -> None:
    """Have a group commit an offset, and fetch it."""
    connection = wire.connect(50000 + wire.connections).syn()
    commit, fetch = KEYS["OffsetCommit"], KEYS["OffsetFetch"]
    sent = {
        "partition_index": 0,
        "committed_offset": COMMITTED,
        "committed_leader_epoch": -1,
        "committed_metadata": "",
    }
    topics = [{"name": READ, "partitions": [sent]}]
    asks = {"group_id": GROUP, "generation_id_or_member_epoch": -1, "member_id": ""}
    done = [{"name": READ, "partitions": [{"partition_index": 0, "error_code": 0}]}]
    exchange(
        connection,
        request(commit, 6, 2, **asks, topics=topics),
        response(commit, 6, 2, topics=done),
    )
    found = {
        "partition_index": 0,
        "committed_offset": COMMITTED,
        "committed_leader_epoch": -1,
        "metadata": "",
        "error_code": 0,
    }
    wanted = [{"name": READ, "partition_indexes": [0]}]
    exchange(
        connection,
        request(fetch, 5, 3, group_id=GROUP, topics=wanted),
        response(fetch, 5, 3, topics=[{"name": READ, "partitions": [found]}], error_code=0),
    )


Batches = list[RecordBatch]


@dataclass
class ChangedBatches(Fault):
    """Changes fetched batches."""

    change: Callable[[Batches], Batches]

    def change_response(self, request: Message, body: Container) -> None:
        for each in _partitions(request, body, "Fetch", "partitions"):
            batches = [b for b in parse_records(each.records or b"") if isinstance(b, RecordBatch)]
            if batches:
                each.records = build_records(self.change(batches), fix_crc=True)


@dataclass
class WithheldLastBatch(Fault):
    """Withholds the last batch of a log from consumers, or in the first `answers` responses."""

    answers: int | None = None

    def change_response(self, request: Message, body: Container) -> None:
        is_refused = request.client_id == CLIENT_ID if self.answers is None else not self.answers
        if is_refused:
            return
        for each in _partitions(request, body, "Fetch", "partitions"):
            batches = [b for b in parse_records(each.records or b"") if isinstance(b, RecordBatch)]
            kept = [b for b in batches if b.base_offset < (WRITES - 1) * RECORDS]
            if len(kept) < len(batches):
                self.answers = self.answers and self.answers - 1
                each.records = build_records(kept)


@dataclass
class ChangedField(Fault):
    """Changes fields of partitions in responses of one API."""

    api: str
    array: str
    change: Callable[[Container], None]
    which: Iterator[int] = field(default_factory=count)
    turn: int | None = None

    def change_response(self, request: Message, body: Container) -> None:
        # A request refused by the leader of a new partition is retried.
        accepted = [e for e in _partitions(request, body, self.api, self.array) if not e.error_code]
        if accepted and (self.turn is None or next(self.which) == self.turn):
            for each in accepted:
                self.change(each)


@dataclass
class RepeatedWrite(Fault):
    """
    Writes one batch of a topic several times, or not at all.

    Batches are recognised by their records, as a request refused by the leader of a new partition
    is retried, and its copies were refused with it.
    """

    topic: str
    number: int
    times: int

    def copies(self, request: Message) -> int:
        return self.times if self._is_written(request, self.number) else 1

    def invent_response(self, request: Message) -> dict[str, Any]:
        return self._response(request, 0, self.number * RECORDS)

    def _is_written(self, request: Message, number: int) -> bool:
        if request.api != "Produce":
            return False
        assert request.body is not None
        batch = parse_records(request.body.topic_data[0].partition_data[0].records)[0]
        assert isinstance(batch, RecordBatch)
        return batch.records[0].value == _value(self.topic, number, 0)

    def _response(self, request: Message, error: int, base_offset: int) -> dict[str, Any]:
        assert request.body is not None
        given = {
            "index": 0,
            "error_code": error,
            "base_offset": base_offset,
            "log_append_time_ms": -1,
            "log_start_offset": 0,
            "record_errors": [],
            "error_message": None,
        }
        name = str(request.body.topic_data[0].name)
        return {
            "responses": [{"name": name, "partition_responses": [given]}],
            "throttle_time_ms": 0,
        }


@dataclass
class RepeatedWriteAfterRefusal(RepeatedWrite):
    """Also refuses the first request of the producer, like the leader of a new partition."""

    is_refused: bool = False

    def copies(self, request: Message) -> int:
        copies = super().copies(request)
        if request.api == "Produce" and not self.is_refused and self._is_written(request, 0):
            return 0
        return copies

    def invent_response(self, request: Message) -> dict[str, Any]:
        self.is_refused = True
        return self._response(request, error_code("NOT_LEADER_OR_FOLLOWER"), -1)


@dataclass
class SwappedResponses(Fault):
    """Swaps the bodies of two Produce responses."""

    turn: int
    seen: int = 0

    def is_held(self, request: Message) -> bool:
        self.seen += request.api == "Produce"
        return request.api == "Produce" and self.seen >= self.turn


def _partitions(request: Message, body: Container, name: str, array: str) -> Iterator[Container]:
    if request.api == name:
        for topic in body.get("responses") or body.get("topics") or ():
            yield from topic[array]


def _first(change: Callable[[RecordBatch], RecordBatch]) -> Callable[[Batches], Batches]:
    return lambda batches: [change(batches[0]), *batches[1:]]


def _less(batch: RecordBatch) -> RecordBatch:
    return batch.with_records(batch.records[:1] + batch.records[2:])


def _flipped(batch: RecordBatch) -> RecordBatch:
    first, *rest = batch.records
    assert first.value is not None
    value = bytes([first.value[0] ^ 1]) + first.value[1:]
    return batch.with_records([first._replace(value=value), *rest])


def _with_first(**values: Any) -> Callable[[RecordBatch], RecordBatch]:
    """Change fields of the first record of a batch."""

    def change(batch: RecordBatch) -> RecordBatch:
        first, *rest = batch.records
        return batch.with_records([first._replace(**values), *rest])

    return change


def _reordered(batch: RecordBatch) -> RecordBatch:
    """Return a batch whose first two records have each other's values."""
    first, second, *rest = batch.records
    swapped = [first._replace(value=second.value), second._replace(value=first.value)]
    return batch.with_records([*swapped, *rest])


def _dated(batch: RecordBatch) -> RecordBatch:
    return replace(batch, base_timestamp=_NOT_NOW_MS, max_timestamp=_NOT_NOW_MS + RECORDS)


def _appended(batch: RecordBatch) -> RecordBatch:
    flags = batch.attributes | TIMESTAMP_TYPE
    return replace(batch, attributes=flags, max_timestamp=_NOT_NOW_MS)


def _added(**values: int) -> Callable[[Container], None]:
    return lambda each: each.update({name: each[name] + by for name, by in values.items()})


def _set(**values: Any) -> Callable[[Container], None]:
    return lambda each: each.update(values)


def _next(each: Container) -> None:
    each.committed_offset += 1


FAULTS: dict[str, Callable[[], Fault]] = {
    "a record is left out": lambda: ChangedBatches(_first(_less)),
    "the first batch of an answer is left out": lambda: ChangedBatches(lambda batches: batches[1:]),
    "a batch is left out": lambda: ChangedBatches(
        lambda batches: [each for each in batches if each.base_offset != LEFT_OUT]
    ),
    "all records are left out": lambda: ChangedBatches(lambda _: []),
    "the last batch is kept from readers": WithheldLastBatch,
    "a batch is given twice": lambda: ChangedBatches(lambda batches: batches[:1] + batches),
    "a byte of a value is flipped": lambda: ChangedBatches(_first(_flipped)),
    "a value is null": lambda: ChangedBatches(_first(_with_first(value=None))),
    "a record gets a key": lambda: ChangedBatches(_first(_with_first(key=b""))),
    "a record gets a header": lambda: ChangedBatches(_first(_with_first(headers=_HEADERS))),
    "values change places": lambda: ChangedBatches(_first(_reordered)),
    "an append is one later": lambda: ChangedField(
        "Produce", "partition_responses", _added(base_offset=1)
    ),
    "a committed offset is 0": lambda: ChangedField(
        "OffsetFetch", "partitions", _set(committed_offset=0)
    ),
    "a group has no committed offset": lambda: ChangedField(
        "OffsetFetch", "partitions", _set(committed_offset=-1)
    ),
    "a commit has another text": lambda: ChangedField(
        "OffsetFetch", "partitions", _set(metadata="other")
    ),
    "a commit of an unknown member": lambda: ChangedField(
        "OffsetCommit", "partitions", _set(error_code=error_code("UNKNOWN_MEMBER_ID")), turn=0
    ),
    "a record is invalid once": lambda: ChangedField(
        "Produce",
        "partition_responses",
        _set(error_code=error_code("INVALID_RECORD"), base_offset=-1),
        turn=5,
    ),
    "a write times out once, though it was done": lambda: ChangedField(
        "Produce",
        "partition_responses",
        _set(error_code=error_code("REQUEST_TIMED_OUT"), base_offset=-1),
        turn=5,
    ),
    "timestamps are changed": lambda: ChangedBatches(lambda batches: [_dated(b) for b in batches]),
    "the broker sets timestamps": lambda: ChangedBatches(
        lambda batches: [_appended(b) for b in batches]
    ),
    "a time of appending is given": lambda: ChangedField(
        "Produce", "partition_responses", _set(log_append_time_ms=_NOT_NOW_MS)
    ),
    "a later time of appending is given": lambda: ChangedField(
        "Produce", "partition_responses", _set(log_append_time_ms=_NOT_NOW_MS), turn=20
    ),
    "an error is flipped": lambda: ChangedField(
        "Produce", "partition_responses", _set(error_code=87), turn=17
    ),
    "the high watermark is 0": lambda: ChangedField("Fetch", "partitions", _set(high_watermark=0)),
    "the last stable offset is 0": lambda: ChangedField(
        "Fetch", "partitions", _set(last_stable_offset=0)
    ),
    "a committed offset is the next": lambda: ChangedField("OffsetFetch", "partitions", _next),
    "answers to writes are swapped": lambda: SwappedResponses(turn=9),
    **{
        f"a write to {topic}, {what}, is {done}": lambda t=topic, n=turn, x=times: RepeatedWrite(
            t, n, x
        )
        for topic in (READ, UNREAD)
        for turn, what in ((10, "in the middle"), (WRITES - 1, "the last"))
        for times, done in ((0, "thrown away"), (2, "done twice"))
    },
    "a write is done twice, after a refused one": lambda: RepeatedWriteAfterRefusal(UNREAD, 10, 2),
}
"""Faults by description."""
