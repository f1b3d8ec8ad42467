"""
High watermarks of partitions in Fetch responses, read from the tape.

Source: KIP-227: a response has only partitions with news, so each has its last known one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

import numpy as np

from dissector.capture.columns import unique
from dissector.engine.exchanges.exchange import Exchange
from dissector.engine.records.produce_results import last_marked
from dissector.engine.records.record_locator import number_topics
from dissector.engine.tables.column_types import distinct
from dissector.engine.tables.exchange_table import NONE, Exchanges, Ints
from dissector.engine.tape import tape
from dissector.protocol.headers import FETCH
from dissector.protocol.program import FieldRef, field_roles, programs
from dissector.protocol.undeclared_nulls import readable_body

_OTHER, _TOPIC, _TOPIC_ID, _PARTITION, _ERROR, _HIGH_WATERMARK = range(6)

_PATHS = {
    "responses.topic": _TOPIC,
    "responses.topic_id": _TOPIC_ID,
    "responses.partitions.partition_index": _PARTITION,
    "responses.partitions.error_code": _ERROR,
    "responses.partitions.high_watermark": _HIGH_WATERMARK,
}


class Marks(NamedTuple):
    """
    High watermarks in the Fetch responses of a window, in the order of exchanges.

    Attributes:
        row: Row of the exchange.
        topic: Index into `topics`.
        partition: Number of the partition.
        offset: The high watermark.
        topics: Names, or ids, of topics.
    """

    row: Ints
    topic: Ints
    partition: Ints
    offset: Ints
    topics: list[str | UUID]


def read_marks(
    table: Exchanges, exchange: Callable[[int], Exchange], chosen: Ints | None = None
) -> Marks:
    """
    Read the Fetch responses of a window.

    Args:
        table: The exchanges.
        exchange: Returns one as an object, by row.
        chosen: The only rows to read; None for all.
    """
    rows = np.flatnonzero((table.api_key == FETCH) & (table.response.start != NONE))
    if chosen is not None:
        rows = np.intersect1d(rows, chosen, assume_unique=True)
    fields = _read(table, rows)
    fits = fields.state == tape.FITS
    category = field_roles(_category)[fields.field].astype(np.int64)
    marks = np.flatnonzero((category == _HIGH_WATERMARK) & fits[fields.message])
    marks = marks[
        (fields.value[marks] >= 0) & (fields.value[last_marked(category == _ERROR)[marks]] == 0)
    ]
    topic_rows = last_marked((category == _TOPIC) | (category == _TOPIC_ID))[marks]
    codes, topics = number_topics(table, fields, topic_rows, category[topic_rows] == _TOPIC_ID)
    partitions = fields.value[last_marked(category == _PARTITION)[marks]]
    found = Marks(rows[fields.message[marks]], codes, partitions, fields.value[marks], topics)
    unread = rows[~fits]
    return found if not len(unread) else _with_objects(found, unread, exchange)


def _with_objects(found: Marks, rows: Ints, exchange: Callable[[int], Exchange]) -> Marks:
    """Return the marks with those of responses that only the codecs can read."""
    topics = list(found.topics)
    more: list[tuple[int, int, int, int]] = []
    for row in rows.tolist():
        body = readable_body(exchange(row).response)
        for topic in (body.get("responses") or ()) if body is not None else ():
            name = topic.get("topic")
            topics.append(topic.topic_id if name is None else name)
            for each in topic.partitions or ():
                if not each.error_code and each.high_watermark >= 0:
                    place = row, len(topics) - 1, each.partition_index
                    more.append((*place, each.high_watermark))
    columns = np.array(more, np.int64).reshape(-1, 4).T
    known = (found.row, found.topic, found.partition, found.offset)
    joined = [np.concatenate(pair) for pair in zip(known, columns, strict=True)]
    order = np.argsort(joined[0], kind="stable")
    row, topic, partition, offset = (each[order] for each in joined)
    return Marks(row, topic, partition, offset, topics)


@dataclass(slots=True)
class HighWatermarks:
    """
    The last high watermark of each partition.

    Attributes:
        by_partition: Topic and partition -> offset.
    """

    by_partition: dict[tuple[str | UUID, int], int] = field(default_factory=dict)

    def add(self, marks: Marks) -> None:
        """Add the high watermarks of a window."""
        kinds, found = distinct(marks.topic << 32 | marks.partition & 0xFFFFFFFF)
        last = np.zeros(len(found), np.int64)
        last[kinds] = np.arange(
            len(kinds)
        )  # of several values for one place numpy assigns the last
        for kind, offset in zip(found.tolist(), marks.offset[last].tolist(), strict=True):
            self.by_partition[marks.topics[kind >> 32], kind & 0xFFFFFFFF] = offset


def _read(table: Exchanges, rows: Ints) -> tape.Tape:
    """Read the fields of Fetch responses; truncated ones do not match."""
    frames = table.response
    start, captured = frames.start[rows], frames.captured_bytes[rows]
    steps = np.full(len(rows), -1, np.int64)
    for version in unique(table.api_version[rows]).tolist():
        same_version = table.api_version[rows] == version
        steps[same_version] = programs().start(FETCH, version, "response")
    steps[captured != frames.size[rows]] = -1
    wanted = (field_roles(_category) != _OTHER).astype(np.uint8)
    ends = start + captured
    return tape.read(table.data, table.carry_over, start, ends, steps, programs(), wanted)


def _category(ref: FieldRef) -> int:
    if (ref.key, ref.kind) != (FETCH, "response"):
        return _OTHER
    return _PATHS.get(ref.path, _OTHER)
