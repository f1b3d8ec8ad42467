"""
The `records` fields of a window: where each is, and for which topic and partition.

They come off the tape. An exchange whose message the tape can't read to its last byte is left to
the codecs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from dissector.engine.records.produce_results import last_marked, produce_results
from dissector.engine.tables.exchange_table import NONE, Exchanges, Frames, Ints
from dissector.engine.tape import tape
from dissector.protocol.api import Kind
from dissector.protocol.carried import may_be_cut
from dissector.protocol.context import per_schemas
from dissector.protocol.program import FieldRef, programs

Bools: TypeAlias = NDArray[np.bool_]

RECORD_CARRIERS: tuple[tuple[int, Kind], ...] = ((0, "request"), (1, "response"), (78, "response"))
"""The messages that carry records."""

_OTHER, _CORRELATION_ID, _TOPIC, _TOPIC_ID, _PARTITION, _RECORDS = range(6)

_PATHS = {
    "correlation_id": _CORRELATION_ID,
    "topic_data.name": _TOPIC,
    "topic_data.topic_id": _TOPIC_ID,
    "topic_data.partition_data.index": _PARTITION,
    "topic_data.partition_data.records": _RECORDS,
    "responses.topic": _TOPIC,
    "responses.topic_id": _TOPIC_ID,
    "responses.partitions.partition_index": _PARTITION,
    "responses.partitions.records": _RECORDS,
}


@dataclass(slots=True)
class RecordFields:
    """
    The fields that hold something, in the order of exchanges, a row each.

    Attributes:
        row: Of the exchange in its window.
        start: Address of the content.
        length: Its bytes.
        may_be_cut: Whether its last batch may be cut off.
        correlation_id: Of the message.
        time_ns: When the message was complete.
        topic: Index into `topics`.
        partition: Number of the partition.
        topics: Names, or ids, of topics.
        base_offset: Of what was produced, the offset of the first record; see `record_answers`.
        error_code: Likewise, the code of the error.
        undecoded: Rows of the exchanges that only the codecs can read.
    """

    row: Ints
    start: Ints
    length: Ints
    may_be_cut: Bools
    correlation_id: Ints
    time_ns: Ints
    topic: Ints
    partition: Ints
    topics: list[str | UUID]
    base_offset: Ints
    error_code: Ints
    undecoded: Ints


def locate_records(table: Exchanges) -> RecordFields:
    """Find the `records` fields in the messages of a window."""
    row, kind, start, there, size, time_ns = _carrier_messages(table)
    whole = there == size
    steps = np.full(len(row), -1, np.int64)
    steps[whole] = _first_steps(table, row[whole], kind[whole])
    read = tape.read(
        table.data, table.carry_over, start, start + there, steps, programs(), _categories()
    )
    fits = read.state == tape.FITS
    category = _categories()[read.field].astype(np.int64)
    records = np.flatnonzero((category == _RECORDS) & (read.value > 0) & fits[read.message])
    named = last_marked((category == _TOPIC) | (category == _TOPIC_ID))[records]
    numbered = last_marked(category == _PARTITION)[records]
    answers = last_marked(category == _CORRELATION_ID)[records]
    message = read.message[records]
    topic, topics = _topics(table, read, named, category[named] == _TOPIC_ID)
    cut = np.array([bool(may_be_cut(*carrier)) for carrier in RECORD_CARRIERS])
    partition = read.value[numbered]
    answered = produce_results(
        table, row[message], topic, partition, {name: at for at, name in enumerate(topics)}
    )
    return RecordFields(
        row=row[message],
        start=read.start[records],
        length=read.value[records],
        may_be_cut=cut[kind[message]],
        correlation_id=read.value[answers],
        time_ns=time_ns[message],
        topic=topic,
        partition=partition,
        topics=topics,
        base_offset=answered.base_offset,
        error_code=answered.error_code,
        undecoded=np.concatenate([row[~fits], answered.undecoded]),
    )


def _carrier_messages(table: Exchanges) -> list[Ints]:
    """Return row, index in CARRIERS, start, there, size, time of all that may carry records."""
    parts: list[list[Ints]] = []
    for number, (key, kind) in enumerate(RECORD_CARRIERS):
        frames: Frames = table.request if kind == "request" else table.response
        rows = np.flatnonzero((table.api_key == key) & (frames.start != NONE))
        columns = (frames.start, frames.captured_bytes, frames.size, frames.time_ns)
        parts.append([rows, np.full(len(rows), number), *(column[rows] for column in columns)])
    joined = [np.concatenate(column) for column in zip(*parts, strict=True)]
    order = np.argsort(joined[0], kind="stable")
    return [column[order] for column in joined]


def _first_steps(table: Exchanges, row: Ints, kind: Ints) -> Ints:
    """Return the first step of each message's program; -1 where there is none."""
    what, which = np.unique(np.stack((kind, table.api_version[row])), axis=1, return_inverse=True)
    steps = [
        programs().start(RECORD_CARRIERS[number][0], version, RECORD_CARRIERS[number][1])
        for number, version in what.T.tolist()
    ]
    return np.array(steps, np.int64)[which.ravel()]


def _categories() -> NDArray[np.uint8]:
    """Return for each field number what it tells, if anything."""
    return _categories_of(len(programs().field_refs))


@per_schemas
def _categories_of(count: int) -> NDArray[np.uint8]:
    """Return them of so many fields: programs only ever add some."""
    return np.array([_category(place) for place in programs().field_refs[:count]], np.uint8)


def _category(ref: FieldRef | None) -> int:
    if ref is None or (ref.key >= 0 and (ref.key, ref.kind) not in RECORD_CARRIERS):
        return _OTHER
    return _PATHS.get(ref.path, _OTHER)


def _topics(
    table: Exchanges, read: tape.Tape, at: Ints, is_id: Bools
) -> tuple[Ints, list[str | UUID]]:
    """Number the topics that stand in rows of the tape."""
    numbers: dict[tuple[bool, bytes], int] = {}
    places, which = np.unique(at, return_inverse=True)
    ids = np.zeros(len(places), np.bool_)
    ids[which] = is_id
    rows = read.start[places].tolist(), read.value[places].tolist(), ids.tolist()
    codes = [
        numbers.setdefault((by_id, table.bytes_at(start, length)), len(numbers))
        for start, length, by_id in zip(*rows, strict=True)
    ]
    topics: list[str | UUID] = [
        UUID(bytes=content) if by_id else content.decode("utf-8", "surrogateescape")
        for by_id, content in numbers
    ]
    return np.array(codes, np.int64)[which], topics
