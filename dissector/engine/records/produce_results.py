"""
What responses to Produce say of the records of a window: the first offset and the error.

They come off the tape and are joined, by exchange, topic and partition, to the fields of requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from dissector.engine.tables.exchange_table import NONE, Exchanges, Ints
from dissector.engine.tape import tape
from dissector.protocol.context import per_schemas
from dissector.protocol.headers import PRODUCE
from dissector.protocol.program import FieldRef, programs

_OTHER, _TOPIC, _TOPIC_ID, _PARTITION, _ERROR, _BASE_OFFSET = range(6)

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
    What is said of each of some fields.

    Attributes:
        base_offset: The offset of the first record; NONE where none was written, or nobody knows.
        error_code: The code of the error; NONE where there is no answer.
        undecoded: Rows of the exchanges whose response only the codecs can read.
    """

    base_offset: Ints
    error_code: Ints
    undecoded: Ints


def produce_results(
    table: Exchanges, row: Ints, topic: Ints, partition: Ints, topics: Mapping[str | UUID, int]
) -> ProduceResults:
    """
    Find the answers for fields of requests and responses.

    Args:
        table: The exchanges.
        row: Of each field, its exchange.
        topic: Its topic, by the numbers of `topics`.
        partition: Its partition.
        topics: Numbers of topics, by name or id.
    """
    out = ProduceResults(np.full(len(row), NONE), np.full(len(row), NONE), np.zeros(0, np.int64))
    asked = np.flatnonzero((table.api_key == PRODUCE) & (table.response.start != NONE))
    asked = asked[np.isin(asked, row)]
    if not len(asked):
        return out
    frames = table.response
    start, there = frames.start[asked], frames.captured_bytes[asked]
    whole = there == frames.size[asked]
    steps = np.full(len(asked), -1, np.int64)
    for version in np.unique(table.api_version[asked]).tolist():
        these = whole & (table.api_version[asked] == version)
        steps[these] = programs().start(PRODUCE, version, "response")
    read = tape.read(
        table.data, table.carry_over, start, start + there, steps, programs(), _categories()
    )
    fits = read.state == tape.FITS
    out.undecoded = asked[~fits]
    category = _categories()[read.field].astype(np.int64)
    base = np.flatnonzero((category == _BASE_OFFSET) & fits[read.message])
    if not len(base):
        return out
    named = last_marked((category == _TOPIC) | (category == _TOPIC_ID))[base]
    code = read.value[last_marked(category == _ERROR)[base]]
    numbers = _topic_numbers(table, read, named, category[named] == _TOPIC_ID, topics)
    places = (
        asked[read.message[base]],
        numbers,
        read.value[last_marked(category == _PARTITION)[base]],
    )
    wanted = row, topic, partition
    both = np.concatenate([np.stack(places, axis=1), np.stack(wanted, axis=1)])
    _, which = np.unique(both, axis=0, return_inverse=True)
    which = which.ravel()
    # Of several answers the first counts: it is written last.
    found = np.full(len(both), -1, np.int64)
    found[which[: len(base)][::-1]] = np.arange(len(base))[::-1]
    at = found[which[len(base) :]]
    is_answered = (at >= 0) & (table.api_key[row] == PRODUCE)
    out.error_code[is_answered] = code[at[is_answered]]
    offset = read.value[base]
    written = is_answered.copy()
    written[is_answered] = (
        (out.error_code[is_answered] == 0)
        & (offset[at[is_answered]] >= 0)
        & (offset[at[is_answered]] < MAX_OFFSET)
    )
    out.base_offset[written] = offset[at[written]]
    return out


def last_marked(marks: NDArray[np.bool_]) -> Ints:
    """Return for each row the last one up to it that is one of these."""
    found: Ints = np.maximum.accumulate(np.where(marks, np.arange(len(marks)), 0))
    return found


def _topic_numbers(
    table: Exchanges,
    read: tape.Tape,
    at: Ints,
    is_id: NDArray[np.bool_],
    topics: Mapping[str | UUID, int],
) -> Ints:
    """Return the numbers of the topics that stand in rows of the tape; -1 for others."""
    places, which = np.unique(at, return_inverse=True)
    ids = np.zeros(len(places), np.bool_)
    ids[which] = is_id
    rows = read.start[places].tolist(), read.value[places].tolist(), ids.tolist()
    known: dict[tuple[bool, bytes], int] = {}
    numbers = []
    for start, length, by_id in zip(*rows, strict=True):
        content = table.bytes_at(start, length)
        if (by_id, content) not in known:
            name = UUID(bytes=content) if by_id else content.decode("utf-8", "surrogateescape")
            known[by_id, content] = topics.get(name, -1)
        numbers.append(known[by_id, content])
    return np.array(numbers, np.int64)[which]


def _categories() -> NDArray[np.uint8]:
    """Return for each field number what it tells, if anything."""
    return _categories_of(len(programs().field_refs))


@per_schemas
def _categories_of(count: int) -> NDArray[np.uint8]:
    """Return them of so many fields: programs only ever add some."""
    return np.array([_category(place) for place in programs().field_refs[:count]], np.uint8)


def _category(ref: FieldRef | None) -> int:
    if ref is None or ref.key != PRODUCE or ref.kind != "response":
        return _OTHER
    return _PATHS.get(ref.path, _OTHER)


def records_before(field: Ints, count: Ints) -> Ints:
    """Return of each batch how many records are in those before it in its field."""
    before: Any = np.cumsum(count) - count
    first = np.searchsorted(field, field, "left")
    out: Ints = before - before[first] if len(before) else before
    return out


MAX_OFFSET = 1 << 62
"""Offsets that a broker names are below that."""
