"""
High watermarks of partitions in Fetch responses, read from the tape.

Source: KIP-227: a response has only partitions with news, so each has its last known one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from dissector.engine.exchanges.exchange import Exchange
from dissector.engine.records.produce_results import last_marked
from dissector.engine.records.record_locator import number_topics
from dissector.engine.tables.column_types import distinct
from dissector.engine.tables.exchange_table import NONE, Exchanges, Ints
from dissector.engine.tape import tape
from dissector.protocol.context import per_schemas
from dissector.protocol.headers import FETCH
from dissector.protocol.program import FieldRef, programs
from dissector.protocol.undeclared_nulls import readable_body

_OTHER, _TOPIC, _TOPIC_ID, _PARTITION, _ERROR, _HIGH_WATERMARK = range(6)

_PATHS = {
    "responses.topic": _TOPIC,
    "responses.topic_id": _TOPIC_ID,
    "responses.partitions.partition_index": _PARTITION,
    "responses.partitions.error_code": _ERROR,
    "responses.partitions.high_watermark": _HIGH_WATERMARK,
}


@dataclass(slots=True)
class HighWatermarks:
    """
    The last high watermark of each partition.

    Attributes:
        by_partition: Topic and partition -> offset.
    """

    by_partition: dict[tuple[str | UUID, int], int] = field(default_factory=dict)

    def read(self, table: Exchanges, exchange: Callable[[int], Exchange]) -> None:
        """Read the Fetch responses of a window; `exchange` returns one as an object, by row."""
        rows = np.flatnonzero((table.api_key == FETCH) & (table.response.start != NONE))
        if not len(rows):
            return
        fields = _read(table, rows)
        fits = fields.state == tape.FITS
        category = _categories()[fields.field].astype(np.int64)
        marks = np.flatnonzero((category == _HIGH_WATERMARK) & fits[fields.message])
        marks = marks[
            (fields.value[marks] >= 0) & (fields.value[last_marked(category == _ERROR)[marks]] == 0)
        ]
        if len(marks):
            self._add(table, fields, category, marks)
        for row in rows[~fits].tolist():
            self._add_object(exchange(row))

    def _add(self, table: Exchanges, fields: tape.Tape, category: Ints, marks: Ints) -> None:
        """Add the last high watermark of each partition."""
        topic_rows = last_marked((category == _TOPIC) | (category == _TOPIC_ID))[marks]
        codes, topics = number_topics(table, fields, topic_rows, category[topic_rows] == _TOPIC_ID)
        partitions = fields.value[last_marked(category == _PARTITION)[marks]]
        kinds, found = distinct(codes << 32 | partitions & 0xFFFFFFFF)
        last = np.zeros(len(found), np.int64)
        last[kinds] = marks  # of several values for one place numpy assigns the last
        for kind, mark in zip(found.tolist(), fields.value[last].tolist(), strict=True):
            self.by_partition[topics[kind >> 32], kind & 0xFFFFFFFF] = mark

    def _add_object(self, exchange: Exchange) -> None:
        body = readable_body(exchange.response)
        for topic in (body.get("responses") or ()) if body is not None else ():
            name = topic.get("topic")
            for each in topic.partitions or ():
                if not each.error_code and each.high_watermark >= 0:
                    key = topic.topic_id if name is None else name, each.partition_index
                    self.by_partition[key] = each.high_watermark


def _read(table: Exchanges, rows: Ints) -> tape.Tape:
    """Read the fields of Fetch responses; truncated ones do not match."""
    frames = table.response
    start, captured = frames.start[rows], frames.captured_bytes[rows]
    steps = np.full(len(rows), -1, np.int64)
    for version in np.unique(table.api_version[rows]).tolist():
        same_version = table.api_version[rows] == version
        steps[same_version] = programs().start(FETCH, version, "response")
    steps[captured != frames.size[rows]] = -1
    wanted = (_categories() != _OTHER).astype(np.uint8)
    ends = start + captured
    return tape.read(table.data, table.carry_over, start, ends, steps, programs(), wanted)


def _categories() -> NDArray[np.uint8]:
    """Return the role of each field number."""
    return _categories_of(len(programs().field_refs))


@per_schemas
def _categories_of(count: int) -> NDArray[np.uint8]:
    """Return the roles of the first `count` fields; programs only ever add fields."""
    return np.array([_category(ref) for ref in programs().field_refs[:count]], np.uint8)


def _category(ref: FieldRef | None) -> int:
    if ref is None or (ref.key, ref.kind) != (FETCH, "response"):
        return _OTHER
    return _PATHS.get(ref.path, _OTHER)
