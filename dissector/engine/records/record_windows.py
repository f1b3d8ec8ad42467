"""
The records of a window in columns: what `record_rows` gives row by row.

Where something is wrong with an exchange, or the loops do not read its records, the exchange is to
be asked as an object; it stands in its place among the columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from dissector.engine.facts.topic_table import TopicNames, name_defining_rows
from dissector.engine.records import batch_table as of_batch
from dissector.engine.records import record_decoder as of_record
from dissector.engine.records.batch_scanner import find_batches
from dissector.engine.records.batch_table import UNDECIDED, VALID, Batches
from dissector.engine.records.decompressor import iter_payloads
from dissector.engine.records.produce_results import records_before
from dissector.engine.records.record_decoder import Records
from dissector.engine.records.record_locator import RECORD_CARRIERS, RecordFields, locate_records
from dissector.engine.tables.column_types import (
    Coded,
    Columns,
    Headers,
    Integers,
    SliceBuffers,
    Slices,
    distinct,
)
from dissector.engine.tables.exchange_table import NONE, Exchanges, Ints
from dissector.protocol.apis import api_name
from dissector.protocol.error_codes import error_name
from dissector.protocol.facts import NO_ID
from dissector.protocol.headers import PRODUCE
from dissector.protocol.records import layout
from dissector.protocol.records.compression import CODEC_MASK, codec_name
from dissector.protocol.records.control import control_type
from dissector.protocol.records.rows import SEQUENCE_MASK

Bools: TypeAlias = NDArray[np.bool_]

PART_RECORDS = 50_000
"""About how many records come in columns at a time."""

MIN_COLUMN_VALUE = NONE + (1 << 48)
"""Offsets and times that no column holds: NONE and what is near it has a meaning there."""

_NO_ROWS = np.zeros(0, np.int64)

_APIS = [api_name(key) for key, _ in RECORD_CARRIERS]
_CODECS = [codec_name(number) for number in range(CODEC_MASK + 1)]


@dataclass(slots=True)
class RecordPart:
    """
    Records in columns, and rows of exchanges that are to be asked for theirs.

    Attributes:
        columns: Empty where there are none.
        insert_at: Before which record each of the exchanges stands.
        object_rows: The exchanges, in order.
    """

    columns: Columns
    insert_at: Ints
    object_rows: Ints


def record_parts(
    table: Exchanges, names: TopicNames, needs_objects: Callable[[str], bool]
) -> Iterator[RecordPart]:
    """
    Yield the records of a window.

    Exchanges are asked to learn names of topics too (`Exchange.learn`), before the next part is
    asked for. Then the columns are gone.

    Args:
        table: The exchanges.
        names: What is known of topics.
        needs_objects: Tells of a topic's name whether its records are to be read one by one.
    """
    fields = locate_records(table)
    where = fields.start, fields.length, fields.may_be_cut
    found = find_batches(table.data, table.carry_over, *where, message_sets=True)
    telling = _NO_ROWS
    if not names.is_rereadable:
        telling = name_defining_rows(table.api_key, table.api_version)
    asked = _object_rows(fields, found, names, needs_objects, telling)
    found.state[np.isin(fields.row, asked)] = UNDECIDED
    window = _WindowRecords(table, fields, found, names)
    unit = fields.row[found.field]
    at = 0
    for these in iter_payloads(table.data, table.carry_over, found, unit, PART_RECORDS):
        if not len(these.batch):
            continue
        records = of_record.read_records(table.data, table.carry_over, found, these)
        row = unit[records.batch]
        odd = records.table[of_record.OFFSET] < MIN_COLUMN_VALUE
        has_time = found.magic[records.batch] > 0
        odd |= has_time & (records.table[of_record.TIMESTAMP] < MIN_COLUMN_VALUE)
        wrong = unit[these.batch[found.state[found.field[these.batch]] != VALID]]
        until = int(np.searchsorted(asked, unit[these.batch[-1]], "right"))
        here = np.unique(np.concatenate((asked[at:until], wrong, row[odd])))
        at = until
        rows = _RecordColumns(
            window, records, SliceBuffers(table.data, table.carry_over, these.arena)
        )
        yield from _split_parts(rows, row, here, telling)
    if at < len(asked):
        yield RecordPart({}, np.zeros(len(asked) - at, np.int64), asked[at:])


def _split_parts(
    rows: _RecordColumns, row: Ints, object_rows: Ints, naming_rows: Ints
) -> Iterator[RecordPart]:
    """Yield records but those of exchanges that are asked; a part ends at one that tells names."""
    kept = np.flatnonzero(~np.isin(row, object_rows))
    at = np.searchsorted(row[kept], object_rows)
    ends = np.flatnonzero(np.isin(object_rows, naming_rows)) + 1
    begin = first = 0
    for end in (*ends.tolist(), None):
        stop = len(kept) if end is None else int(at[end - 1])
        these = kept[begin:stop]
        if len(these) or len(object_rows[first:end]):
            columns = rows.columns(these) if len(these) else {}
            yield RecordPart(columns, at[first:end] - begin, object_rows[first:end])
        begin, first = stop, end or 0


def _object_rows(
    fields: RecordFields,
    batches: Batches,
    names: TopicNames,
    needs_objects: Callable[[str], bool],
    naming_rows: Ints,
) -> Ints:
    """Return, in order, the rows of which is clear already that they are to be asked."""
    apart = np.zeros(len(fields.topics), np.bool_)
    for number, topic in enumerate(fields.topics):
        name = topic if isinstance(topic, str) else names.find_name(topic)
        # What is nameless may get its name within the window.
        apart[number] = needs_objects(name) if name is not None else len(naming_rows) > 0
    not_right = batches.state != VALID
    rows = fields.undecoded, naming_rows, fields.row[apart[fields.topic] | not_right]
    return np.unique(np.concatenate(rows))


@dataclass(slots=True)
class _WindowRecords:
    """What the records of a window share."""

    table: Exchanges
    fields: RecordFields
    batches: Batches
    names: TopicNames
    api: Ints = field(init=False)

    def __post_init__(self) -> None:
        keys = [key for key, _ in RECORD_CARRIERS]
        self.api = np.searchsorted(keys, self.table.api_key[self.fields.row])

    def topics(self) -> tuple[list[str | None], list[str | None]]:
        """Return the names and the ids of topics, as far as they are known by now."""
        topics: list[str | None] = []
        ids: list[str | None] = []
        for topic in self.fields.topics:
            is_id = isinstance(topic, UUID) and topic != NO_ID
            ids.append(str(topic) if is_id else None)
            if isinstance(topic, UUID):
                topics.append(self.names.find_name(topic) if is_id else None)
            else:
                topics.append(topic)
        return topics, ids


@dataclass(slots=True)
class _RecordColumns:
    """Records of a window, of which columns are made."""

    window: _WindowRecords
    records: Records
    buffers: SliceBuffers
    first_header: Ints = field(init=False)

    def __post_init__(self) -> None:
        count = self.records.table[of_record.HEADERS]
        self.first_header = np.cumsum(count) - count

    def columns(self, part: Ints) -> Columns:
        """Return the columns of some records, in the order of `COLUMNS`."""
        window, fields, found = self.window, self.window.fields, self.window.batches
        table = self.records.table.take(part, axis=1)
        batch = self.records.batch[part]
        number = found.field[batch]
        topics, ids = window.topics()
        attributes = found.attributes[batch]
        return {
            "connection": Integers(window.table.connection[fields.row][number]),
            "correlation_id": Integers(fields.correlation_id[number]),
            "api": Coded(window.api[number], _APIS),
            "time_ns": Integers(fields.time_ns[number]),
            "topic": _nullable_coded(fields.topic[number], topics),
            "topic_id": _nullable_coded(fields.topic[number], ids),
            "partition": Integers(fields.partition[number]),
            "offset": Integers(self._offset(part, number, table[of_record.OFFSET])),
            "timestamp_ms": Integers(table[of_record.TIMESTAMP]),
            "key": self._slices(table[of_record.KEY : of_record.KEY + 2]),
            "value": self._slices(table[of_record.VALUE : of_record.VALUE + 2]),
            "headers": Headers(
                self.first_header[part],
                table[of_record.HEADERS],
                self._slices(self.records.headers[:2]),
                self._slices(self.records.headers[2:]),
            ),
            "magic": Integers(found.magic[batch]),
            "codec": Coded(attributes & CODEC_MASK, _CODECS),
            "producer_id": Integers(found.column(of_batch.PRODUCER_ID)[batch]),
            "producer_epoch": Integers(found.column(of_batch.PRODUCER_EPOCH)[batch]),
            "sequence": Integers(_sequence(found, batch, table[of_record.OFFSET])),
            "transactional": Coded(
                (attributes & layout.TRANSACTIONAL != 0).astype(np.int64), (False, True)
            ),
            "control": self._control(attributes, table[of_record.KEY]),
            "error": _errors(fields.error_code[number]),
        }

    def _offset(self, part: Ints, number: Ints, offset: Ints) -> Ints:
        """Return the offsets of records: of those that were produced as the response has them."""
        fields, found, batch = self.window.fields, self.window.batches, self.records.batch
        asks = self.window.table.api_key[fields.row[number]] == PRODUCE
        if not asks.any():
            return offset
        first = np.searchsorted(batch, batch[part], "left")
        at = records_before(found.field, found.count)[batch[part]] + part - first
        base = fields.base_offset[number]
        return np.where(asks, np.where(base == NONE, NONE, base + at), offset)

    def _slices(self, table: NDArray[np.int64]) -> Slices:
        start, length = table
        return Slices(start, length, self.buffers)

    def _control(self, attributes: Ints, key: Ints) -> Coded:
        """Return what control records say."""
        codes = np.full(len(key), NONE)
        these = np.flatnonzero(attributes & layout.CONTROL)
        keys = [self.buffers.bytes_at(start, 4) for start in key[these].tolist()]
        values = list(dict.fromkeys(map(control_type, keys)))
        codes[these] = [values.index(control_type(each)) for each in keys]
        return Coded(codes, values)


def _nullable_coded(codes: Ints, values: list[str | None]) -> Coded:
    """Return a column whose values may be null."""
    null = np.array([value is None for value in values], np.bool_)
    return Coded(np.where(null[codes], NONE, codes) if null.any() else codes, values)


def _errors(codes: Ints) -> Coded:
    """Return the names of errors; null where there is no answer."""
    places, values = distinct(codes)
    there = values != NONE
    numbers = np.where(there, np.cumsum(there) - 1, NONE)
    return Coded(numbers[places], [error_name(code) for code in values[there].tolist()])


def _sequence(batches: Batches, batch: Ints, offset: Ints) -> Ints:
    """Return the sequence of each record; see `iter_records`."""
    base = batches.column(of_batch.BASE_SEQUENCE)
    from_offset = (base - batches.column(of_batch.BASE_OFFSET))[batch]
    return np.where((base >= 0)[batch], from_offset + offset & SEQUENCE_MASK, -1)
