"""
Base offsets and errors from Produce responses, joined to the `records` fields of requests.

They are read from the tape, and joined by exchange, topic and partition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from dissector.capture.columns import unique
from dissector.engine.tables.column_types import distinct
from dissector.engine.tables.dictionaries import numbered_texts
from dissector.engine.tables.exchange_table import NONE, Exchanges, Ints
from dissector.engine.tape import tape
from dissector.protocol.headers import PRODUCE
from dissector.protocol.program import FieldRef, field_roles, programs

_OTHER, _TOPIC, _TOPIC_ID, _PARTITION, _ERROR, _BASE_OFFSET = range(6)
"""Role of a field on the tape."""

_PATHS = {
    "responses.name": _TOPIC,
    "responses.topic_id": _TOPIC_ID,
    "responses.partition_responses.index": _PARTITION,
    "responses.partition_responses.error_code": _ERROR,
    "responses.partition_responses.base_offset": _BASE_OFFSET,
}


@dataclass(slots=True)
class ProduceResults:
    """
    Result of the produced records in each `records` field.

    Attributes:
        base_offset: Offset of the first record; NONE if nothing was written, or if unknown.
        error_code: The error code; NONE without a response.
        undecoded: Rows of exchanges with a response that only the codecs can read.
    """

    base_offset: Ints
    error_code: Ints
    undecoded: Ints


def produce_results(
    table: Exchanges, row: Ints, topic: Ints, partition: Ints, topics: Mapping[str | UUID, int]
) -> ProduceResults:
    """
    Find the results of `records` fields.

    Args:
        table: The exchanges.
        row: Exchange of each field.
        topic: Topic of each field, by the numbers of `topics`.
        partition: Partition of each field.
        topics: Numbers of topics, by name or id.
    """
    results = no_results(len(row))
    responses = np.flatnonzero((table.api_key == PRODUCE) & (table.response.start != NONE))
    responses = responses[np.isin(responses, row)]
    if not len(responses):
        return results
    frames = table.response
    start, captured = frames.start[responses], frames.captured_bytes[responses]
    is_whole = captured == frames.size[responses]
    steps = np.full(len(responses), -1, np.int64)
    for version in unique(table.api_version[responses]).tolist():
        same_version = is_whole & (table.api_version[responses] == version)
        steps[same_version] = programs().start(PRODUCE, version, "response")
    roles, end = field_roles(_category), start + captured
    fields = tape.read(table.data, table.carry_over, start, end, steps, programs(), roles)
    fits = fields.state == tape.FITS
    results.undecoded = responses[~fits]
    category = roles[fields.field].astype(np.int64)
    base = np.flatnonzero((category == _BASE_OFFSET) & fits[fields.message])
    if not len(base):
        return results
    topic_rows = last_marked((category == _TOPIC) | (category == _TOPIC_ID))[base]
    error_codes = fields.value[last_marked(category == _ERROR)[base]]
    numbers = _topic_numbers(table, fields, topic_rows, category[topic_rows] == _TOPIC_ID, topics)
    result_keys = (
        responses[fields.message[base]],
        numbers,
        fields.value[last_marked(category == _PARTITION)[base]],
    )
    field_keys = row, topic, partition
    key_numbers = _numbers_of_keys(
        [np.concatenate(both) for both in zip(result_keys, field_keys, strict=True)]
    )
    # Of several results for a partition the first counts: it is assigned last.
    result_of_key = np.full(len(key_numbers), -1, np.int64)
    result_of_key[key_numbers[: len(base)][::-1]] = np.arange(len(base))[::-1]
    result = result_of_key[key_numbers[len(base) :]]
    is_answered = (result >= 0) & (table.api_key[row] == PRODUCE)
    results.error_code[is_answered] = error_codes[result[is_answered]]
    offsets = fields.value[base]
    written = is_answered.copy()
    written[is_answered] = (
        (results.error_code[is_answered] == 0)
        & (offsets[result[is_answered]] >= 0)
        & (offsets[result[is_answered]] < MAX_OFFSET)
    )
    results.base_offset[written] = offsets[result[written]]
    return results


def no_results(count: int) -> ProduceResults:
    """Return the results of `records` fields without known ones."""
    return ProduceResults(np.full(count, NONE), np.full(count, NONE), np.zeros(0, np.int64))


def last_marked(marks: NDArray[np.bool_]) -> Ints:
    """Return for each row the last marked row up to it; 0 without one."""
    found: Ints = np.maximum.accumulate(np.where(marks, np.arange(len(marks)), 0))
    return found


def _numbers_of_keys(columns: Sequence[Ints]) -> Ints:
    """Return a number of each row, the same for rows with the same values."""
    numbers, *others = (distinct(each) for each in columns)
    for codes, found in others:
        numbers = distinct(numbers[0] * len(found) + codes)
    return numbers[0]


def _topic_numbers(
    table: Exchanges,
    fields: tape.Tape,
    at: Ints,
    is_id: NDArray[np.bool_],
    topics: Mapping[str | UUID, int],
) -> Ints:
    """Return the topic numbers of tape rows that hold names or ids; -1 for other topics."""
    start, length = fields.start[at], fields.value[at]
    contents, first = numbered_texts(table, start, length)
    codes, found = distinct(2 * contents + is_id)
    numbers = []
    for code in found.tolist():
        row = int(first[code >> 1])
        content = table.bytes_at(int(start[row]), int(length[row]))
        name = UUID(bytes=content) if code & 1 else content.decode("utf-8", "surrogateescape")
        numbers.append(topics.get(name, -1))
    return np.array(numbers, np.int64)[codes]


def _category(ref: FieldRef) -> int:
    if ref.key != PRODUCE or ref.kind != "response":
        return _OTHER
    return _PATHS.get(ref.path, _OTHER)


def records_before(field: Ints, count: Ints) -> Ints:
    """Return for each batch the number of records in earlier batches of its field."""
    before: Any = np.cumsum(count) - count
    first_batch = np.searchsorted(field, field, "left")
    out: Ints = before - before[first_batch] if len(before) else before
    return out


MAX_OFFSET = 1 << 62
"""Offsets in responses are below this."""
