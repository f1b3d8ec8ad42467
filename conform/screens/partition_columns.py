"""
The partitions of Produce and Fetch messages of a window in columns, read from the tape.

The partitions of a response are paired with those of its request by digests of topic and number:
equal sums over both messages mean the same partitions.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from conform.registry.screened_columns import (
    FetchSessions,
    FieldBatches,
    Partitions,
    ScreenedPartitions,
    ScreenedRows,
    VersionColumns,
)
from conform.screens.item_keys import content_digests, mixed
from dissector.engine.records.produce_results import last_marked
from dissector.engine.tables.exchange_table import NONE, Exchanges
from dissector.engine.tape.tape import NULL, Tape
from dissector.protocol.headers import FETCH, PRODUCE
from dissector.protocol.program import FieldRef, field_roles

Ints: TypeAlias = NDArray[np.int64]

_OTHER, _TOPIC, _TOPIC_ID, _PARTITION, _ERROR, _OFFSET, _STABLE, _START, _RECORDS = range(9)
_TRANSACTION = 9

_PATHS = {
    (PRODUCE, "transactional_id"): _TRANSACTION,
    (PRODUCE, "topic_data.name"): _TOPIC,
    (PRODUCE, "topic_data.topic_id"): _TOPIC_ID,
    (PRODUCE, "topic_data.partition_data.index"): _PARTITION,
    (PRODUCE, "topic_data.partition_data.records"): _RECORDS,
    (PRODUCE, "responses.name"): _TOPIC,
    (PRODUCE, "responses.topic_id"): _TOPIC_ID,
    (PRODUCE, "responses.partition_responses.index"): _PARTITION,
    (PRODUCE, "responses.partition_responses.error_code"): _ERROR,
    (PRODUCE, "responses.partition_responses.base_offset"): _OFFSET,
    (PRODUCE, "responses.partition_responses.log_start_offset"): _START,
    (FETCH, "topics.topic"): _TOPIC,
    (FETCH, "topics.topic_id"): _TOPIC_ID,
    (FETCH, "topics.partitions.partition"): _PARTITION,
    (FETCH, "topics.partitions.fetch_offset"): _OFFSET,
    (FETCH, "responses.topic"): _TOPIC,
    (FETCH, "responses.topic_id"): _TOPIC_ID,
    (FETCH, "responses.partitions.partition_index"): _PARTITION,
    (FETCH, "responses.partitions.error_code"): _ERROR,
    (FETCH, "responses.partitions.high_watermark"): _OFFSET,
    (FETCH, "responses.partitions.last_stable_offset"): _STABLE,
    (FETCH, "responses.partitions.log_start_offset"): _START,
    (FETCH, "responses.partitions.records"): _RECORDS,
}
_VALUES = (_ERROR, _OFFSET, _STABLE, _START, _RECORDS)


def partitions_of(table: Exchanges, tape: Tape, rows: Ints) -> Partitions:
    """Return the partitions on a tape, whose messages are of some exchanges."""
    category = field_roles(_category)[tape.field]
    partitions = np.flatnonzero(category == _PARTITION)
    is_topic = (category == _TOPIC) | (category == _TOPIC_ID)
    topics = np.flatnonzero(is_topic)
    digests = np.zeros(len(category), np.uint64)
    digests[topics] = mixed(content_digests(table, tape, topics) + mixed(tape.value[topics]))
    topic_rows = last_marked(is_topic)[partitions]
    topic = digests[topic_rows]
    first_topics = np.searchsorted(tape.message[topics], tape.message[partitions])
    owner = np.searchsorted(partitions, np.arange(len(category)), "right") - 1
    columns: list[Any] = []
    for role in _VALUES:
        values = np.full(len(partitions), NULL, np.int64)
        at = np.flatnonzero(category == role)
        values[owner[at]] = tape.value[at]
        columns.append(values)
    places = np.full(len(partitions), NONE, np.int64)
    at = np.flatnonzero((category == _RECORDS) & (tape.value > 0))
    places[owner[at]] = tape.start[at]
    is_transaction = category == _TRANSACTION
    transaction = last_marked(is_transaction)[partitions]
    has_transaction = is_transaction[transaction]
    has_transaction &= tape.message[transaction] == tape.message[partitions]
    columns = [
        rows[tape.message[partitions]],
        topic,
        tape.start[topic_rows],
        tape.value[topic_rows],
        category[topic_rows] == _TOPIC_ID,
        tape.value[partitions],
        mixed(topic + mixed(tape.value[partitions])),
        np.searchsorted(topics, topic_rows) - first_topics,
        np.arange(len(partitions)) - np.searchsorted(topic_rows, topic_rows),
        *columns,
        places,
        tape.start[transaction],
        np.where(has_transaction, tape.value[transaction], NULL),
    ]
    return Partitions(*columns)


def joined(parts: list[Partitions]) -> Partitions:
    """Return the partitions of several tapes, which follow each other."""
    names = [each.name for each in fields(Partitions)]
    types = {"digest": np.uint64, "topic": np.uint64, "is_id": np.bool_}
    columns: list[Any] = [
        np.concatenate(
            [np.zeros(0, types.get(name, np.int64)), *(getattr(each, name) for each in parts)]
        )
        for name in names
    ]
    return Partitions(*columns)


def paired(
    rows: ScreenedRows,
    request: Partitions,
    response: Partitions,
    topics: Ints,
    batches: FieldBatches,
    sessions: FetchSessions,
    versions: VersionColumns,
) -> ScreenedPartitions:
    """Pair the partitions of requests and responses."""
    table, count = rows.table, len(rows.table)
    is_same = np.isin(table.api_key, (PRODUCE, FETCH)) & rows.has_request & rows.has_response
    is_same &= request.count(count) == response.count(count)
    sums = np.zeros((2, count), np.uint64)
    for number, side in enumerate((request, response)):
        np.add.at(sums[number], side.row, side.digest)
    is_same &= sums[0] == sums[1]
    for side in (request, response):
        is_same[_repeating(side)] = False
    asked, answered = (_ordered(side, is_same) for side in (request, response))
    answer = np.full(len(request.row), NONE, np.int64)
    answer[asked] = answered
    requested = np.full(len(response.row), NONE, np.int64)
    requested[answered] = request.offset[asked]
    return ScreenedPartitions(
        rows, request, response, is_same, answer, requested, topics, batches, sessions, versions
    )


def _repeating(side: Partitions) -> Ints:
    """Return the exchanges whose message has a partition twice."""
    order = np.lexsort((side.digest, side.row))
    row, digest = side.row[order], side.digest[order]
    repeated: Ints = row[1:][(row[1:] == row[:-1]) & (digest[1:] == digest[:-1])]
    return repeated


def _ordered(side: Partitions, is_same: NDArray[np.bool_]) -> Ints:
    """Return the partitions of some exchanges in the order of exchanges and digests."""
    chosen = np.flatnonzero(is_same[side.row])
    order: Ints = chosen[np.lexsort((side.digest[chosen], side.row[chosen]))]
    return order


def _category(ref: FieldRef) -> int:
    return _PATHS.get((ref.key, ref.path), _OTHER)
