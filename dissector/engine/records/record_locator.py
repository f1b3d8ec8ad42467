"""
The `records` fields of a window: address, topic and partition of each.

They are read from the tape. Exchanges with a message that the tape can't read to its last byte are
left to the codecs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from dissector.engine.records.batch_scanner import find_batches
from dissector.engine.records.batch_table import Batches
from dissector.engine.records.produce_results import last_marked, no_results, produce_results
from dissector.engine.tables.column_types import Coded, distinct, numbered
from dissector.engine.tables.dictionaries import numbered_texts
from dissector.engine.tables.exchange_table import NONE, Exchanges, Frames, Ints
from dissector.engine.tape import tape
from dissector.protocol.api import Kind
from dissector.protocol.program import FieldRef, field_roles, programs
from dissector.protocol.records_fields import may_be_cut

Bools: TypeAlias = NDArray[np.bool_]

RECORD_CARRIERS: tuple[tuple[int, Kind], ...] = ((0, "request"), (1, "response"), (78, "response"))
"""The messages that contain record batches: API key and kind."""

PRODUCE_REQUEST = 0
"""Index of Produce requests in `RECORD_CARRIERS`."""

_OTHER, _CORRELATION_ID, _TOPIC, _TOPIC_ID, _PARTITION, _HIGH_WATERMARK, _RECORDS, _ACKS = range(8)

_PATHS = {
    "correlation_id": _CORRELATION_ID,
    "acks": _ACKS,
    "topic_data.name": _TOPIC,
    "topic_data.topic_id": _TOPIC_ID,
    "topic_data.partition_data.index": _PARTITION,
    "topic_data.partition_data.records": _RECORDS,
    "responses.topic": _TOPIC,
    "responses.topic_id": _TOPIC_ID,
    "responses.partitions.partition_index": _PARTITION,
    "responses.partitions.high_watermark": _HIGH_WATERMARK,
    "responses.partitions.records": _RECORDS,
}


_CLIENT_ID_AT = 8


@dataclass(slots=True)
class RecordFields:
    """
    The non-empty `records` fields, in the order of exchanges, a row each.

    Attributes:
        row: Row of the exchange in its window.
        start: Address of the content.
        length: Bytes of the content.
        may_be_cut: Whether the last batch may be cut off.
        correlation_id: Correlation id of the message.
        packet: Number of the message's last packet, from 0.
        time_ns: Capture time of that packet.
        acks: Of a Produce request; NONE for others.
        topic: Index into `topics`.
        partition: Number of the partition.
        high_watermark: The high watermark that a Fetch response gives with them; else NONE.
        topics: Names, or ids, of topics.
        base_offset: Offset of the first record that was produced; see `ProduceResults`.
        error_code: Error code of the produced records; see `ProduceResults`.
        undecoded: Rows of the exchanges that only the codecs can read.
    """

    row: Ints
    start: Ints
    length: Ints
    may_be_cut: Bools
    correlation_id: Ints
    packet: Ints
    time_ns: Ints
    acks: Ints
    topic: Ints
    partition: Ints
    high_watermark: Ints
    topics: list[str | UUID]
    base_offset: Ints
    error_code: Ints
    undecoded: Ints


def locate_records(table: Exchanges, *, with_results: bool = True) -> RecordFields:
    """
    Find the `records` fields in the messages of a window.

    Args:
        table: The window.
        with_results: Whether the results of produced records are read from the responses.
    """
    row, kind, start, captured, size, packet, time_ns = _carrier_messages(table)
    is_whole = captured == size
    steps = np.full(len(row), -1, np.int64)
    steps[is_whole] = _first_steps(table, row[is_whole], kind[is_whole])
    roles, end = field_roles(_category), start + captured
    fields = tape.read(table.data, table.carry_over, start, end, steps, programs(), roles)
    fits = fields.state == tape.FITS
    category = roles[fields.field].astype(np.int64)
    records = np.flatnonzero((category == _RECORDS) & (fields.value > 0) & fits[fields.message])
    topic_rows = last_marked((category == _TOPIC) | (category == _TOPIC_ID))[records]
    partition_rows = last_marked(category == _PARTITION)[records]
    correlation_rows = last_marked(category == _CORRELATION_ID)[records]
    acks = fields.value[last_marked(category == _ACKS)[records]]
    message = fields.message[records]
    topic, topics = number_topics(table, fields, topic_rows, category[topic_rows] == _TOPIC_ID)
    can_be_cut = np.array([bool(may_be_cut(*carrier)) for carrier in RECORD_CARRIERS])
    partition = fields.value[partition_rows]
    numbers = {name: at for at, name in enumerate(topics)}
    results = (
        produce_results(table, row[message], topic, partition, numbers)
        if with_results
        else no_results(len(message))
    )
    return RecordFields(
        row=row[message],
        start=fields.start[records],
        length=fields.value[records],
        may_be_cut=can_be_cut[kind[message]],
        correlation_id=fields.value[correlation_rows],
        packet=packet[message],
        time_ns=time_ns[message],
        acks=np.where(kind[message] == PRODUCE_REQUEST, acks, NONE),
        topic=topic,
        partition=partition,
        high_watermark=_high_watermarks(fields, category, records),
        topics=topics,
        base_offset=results.base_offset,
        error_code=results.error_code,
        undecoded=np.concatenate([row[~fits], results.undecoded]),
    )


def _high_watermarks(fields: tape.Tape, category: Ints, records: Ints) -> Ints:
    """Return the high watermark of each `records` field; NONE if its message has none."""
    rows = last_marked(category == _HIGH_WATERMARK)[records]
    is_own = (category[rows] == _HIGH_WATERMARK) & (fields.message[rows] == fields.message[records])
    values: Ints = np.where(is_own, fields.value[rows], NONE)
    return values


def _carrier_messages(table: Exchanges) -> list[Ints]:
    """Return row, RECORD_CARRIERS index, start, captured bytes, size, packet, time of carriers."""
    parts: list[list[Ints]] = []
    for number, (key, kind) in enumerate(RECORD_CARRIERS):
        frames: Frames = table.request if kind == "request" else table.response
        rows = np.flatnonzero((table.api_key == key) & (frames.start != NONE))
        place = frames.start, frames.captured_bytes, frames.size
        columns = (*place, frames.packet, frames.time_ns)
        parts.append([rows, np.full(len(rows), number), *(column[rows] for column in columns)])
    joined = [np.concatenate(column) for column in zip(*parts, strict=True)]
    order = np.argsort(joined[0], kind="stable")
    return [column[order] for column in joined]


def _first_steps(table: Exchanges, row: Ints, kind: Ints) -> Ints:
    """Return the first step of each message's program; -1 without one."""
    codes, found = distinct(table.api_version[row] * len(RECORD_CARRIERS) + kind)
    kinds = (divmod(each, len(RECORD_CARRIERS)) for each in found.tolist())
    steps = [
        programs().start(RECORD_CARRIERS[number][0], version, RECORD_CARRIERS[number][1])
        for version, number in kinds
    ]
    return np.array(steps, np.int64)[codes]


def _category(ref: FieldRef) -> int:
    if ref.key >= 0 and (ref.key, ref.kind) not in RECORD_CARRIERS:
        return _OTHER
    return _PATHS.get(ref.path, _OTHER)


def find_field_batches(
    table: Exchanges, fields: RecordFields, *, message_sets: bool = False
) -> Batches:
    """Find the batches of the `records` fields of a window; see `find_batches`."""
    locations = fields.start, fields.length, fields.may_be_cut
    return find_batches(table.data, table.carry_over, *locations, message_sets=message_sets)


def number_topics(
    table: Exchanges, fields: tape.Tape, rows_on_tape: Ints, is_id: Bools
) -> tuple[Ints, list[str | UUID]]:
    """Number the topics with names or ids in the given tape rows."""
    distinct_rows, row_numbers = np.unique(rows_on_tape, return_inverse=True)
    ids = np.zeros(len(distinct_rows), np.bool_)
    ids[row_numbers] = is_id
    start, length = fields.start[distinct_rows], fields.value[distinct_rows]
    contents, _ = numbered_texts(table, start, length)
    codes, first = numbered(2 * contents + ids)
    places = zip(start[first].tolist(), length[first].tolist(), ids[first].tolist(), strict=True)
    topics = [_topic(table.bytes_at(at, size), by_id) for at, size, by_id in places]
    return codes[row_numbers], topics


def _topic(content: bytes, by_id: bool) -> str | UUID:
    return UUID(bytes=content) if by_id else content.decode("utf-8", "surrogateescape")


def client_ids(table: Exchanges, rows: Ints) -> Coded:
    """
    Return the client ids of requests; null where it is null or was not captured whole.

    Source: Kafka, RequestHeader.json: the client id follows key, version and correlation id.
    """
    distinct_rows, row_numbers = np.unique(rows, return_inverse=True)
    start, captured = (
        getattr(table.request, name)[distinct_rows] for name in ("start", "captured_bytes")
    )
    length = np.full(len(distinct_rows), -1, np.int64)
    has_length = captured >= _CLIENT_ID_AT + 2
    length[has_length] = table.int16_at(start[has_length] + _CLIENT_ID_AT)
    length[captured < _CLIENT_ID_AT + 2 + length] = -1
    present = np.flatnonzero(length >= 0)
    start, length = start[present] + _CLIENT_ID_AT + 2, length[present]
    codes = np.full(len(distinct_rows), NONE)
    codes[present], first = numbered_texts(table, start, length)
    places = zip(start[first].tolist(), length[first].tolist(), strict=True)
    values = [table.bytes_at(*place).decode("utf-8", "surrogateescape") for place in places]
    return Coded(codes[row_numbers], values)
