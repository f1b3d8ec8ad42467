"""
Records of a window in columns, equal to the rows of `record_rows`.

Exchanges with problems, or with records that the kernels do not read, are listed at their positions
among the columns, to be decoded as objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from dissector.capture.columns import unique
from dissector.engine.facts.topic_table import TopicNames, name_defining_rows
from dissector.engine.records.batch_table import UNDECIDED, VALID, Batches
from dissector.engine.records.decompressor import iter_payloads
from dissector.engine.records.produce_results import records_before
from dissector.engine.records.record_decoder import Records, read_records
from dissector.engine.records.record_locator import (
    RECORD_CARRIERS,
    RecordFields,
    client_ids,
    find_field_batches,
    locate_records,
)
from dissector.engine.tables.column_types import (
    Coded,
    Columns,
    Headers,
    Integers,
    SliceBuffers,
    Slices,
    distinct,
)
from dissector.engine.tables.exchange_table import NONE, STATUS, Exchanges, Ints
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
"""Approximate number of records per part."""

MIN_COLUMN_VALUE = NONE + (1 << 48)
"""Least offset or time that a column can hold; values near NONE have other meanings there."""

_NO_ROWS = np.zeros(0, np.int64)

_APIS = [api_name(key) for key, _ in RECORD_CARRIERS]
_CODECS = [codec_name(number) for number in range(CODEC_MASK + 1)]


@dataclass(slots=True)
class RecordPart:
    """
    Records in columns, and rows of exchanges with records to decode as objects.

    Attributes:
        columns: Empty without records.
        insert_at: Index of the record that follows each object exchange.
        object_rows: Rows of the object exchanges, in order.
    """

    columns: Columns
    insert_at: Ints
    object_rows: Ints


def record_parts(
    table: Exchanges, names: TopicNames, needs_objects: Callable[[str], bool]
) -> Iterator[RecordPart]:
    """
    Yield the records of a window.

    The caller decodes the object exchanges of a part, which also learns topic names
    (`Exchange.learn`), before it requests the next part.

    Args:
        table: The exchanges.
        names: The known topic names.
        needs_objects: Whether the records of a topic, given by its name, have to be decoded as
            objects.
    """
    fields = locate_records(table)
    batches = find_field_batches(table, fields, message_sets=True)
    naming_rows = _NO_ROWS
    if not names.is_rereadable:
        naming_rows = name_defining_rows(table.api_key, table.api_version)
    object_rows = _object_rows(fields, batches, names, needs_objects, naming_rows)
    batches.state[np.isin(fields.row, object_rows)] = UNDECIDED
    window = _WindowRecords(table, fields, batches, names)
    exchange_of_batch = fields.row[batches.field]
    at = 0
    for portion in iter_payloads(
        table.data, table.carry_over, batches, exchange_of_batch, PART_RECORDS
    ):
        if not len(portion.batch):
            continue
        records = read_records(table.data, table.carry_over, batches, portion)
        row = exchange_of_batch[records.batch]
        out_of_range = records.offset < MIN_COLUMN_VALUE
        has_time = batches.magic[records.batch] > 0
        out_of_range |= has_time & (records.timestamp < MIN_COLUMN_VALUE)
        invalid = exchange_of_batch[
            portion.batch[batches.state[batches.field[portion.batch]] != VALID]
        ]
        until = int(np.searchsorted(object_rows, exchange_of_batch[portion.batch[-1]], "right"))
        portion_objects = unique(
            np.concatenate((object_rows[at:until], invalid, row[out_of_range]))
        )
        at = until
        rows = _RecordColumns(
            window, records, SliceBuffers(table.data, table.carry_over, portion.arena)
        )
        yield from _split_parts(rows, row, portion_objects, naming_rows)
    if at < len(object_rows):
        yield RecordPart({}, np.zeros(len(object_rows) - at, np.int64), object_rows[at:])


def _split_parts(
    rows: _RecordColumns, row: Ints, object_rows: Ints, naming_rows: Ints
) -> Iterator[RecordPart]:
    """Yield the records of other exchanges; a part ends after an exchange that names topics."""
    column_rows = np.flatnonzero(~np.isin(row, object_rows))
    at = np.searchsorted(row[column_rows], object_rows)
    ends = np.flatnonzero(np.isin(object_rows, naming_rows)) + 1
    begin = first = 0
    for end in (*ends.tolist(), None):
        stop = len(column_rows) if end is None else int(at[end - 1])
        chosen = column_rows[begin:stop]
        if len(chosen) or len(object_rows[first:end]):
            columns = rows.columns(chosen) if len(chosen) else {}
            yield RecordPart(columns, at[first:end] - begin, object_rows[first:end])
        begin, first = stop, end or 0


def _object_rows(
    fields: RecordFields,
    batches: Batches,
    names: TopicNames,
    needs_objects: Callable[[str], bool],
    naming_rows: Ints,
) -> Ints:
    """Return, in order, the rows with records that must be decoded as objects."""
    topic_needs_objects = np.zeros(len(fields.topics), np.bool_)
    for number, topic in enumerate(fields.topics):
        name = topic if isinstance(topic, str) else names.find_name(topic)
        # A topic without a name may get its name within the window.
        topic_needs_objects[number] = (
            needs_objects(name) if name is not None else len(naming_rows) > 0
        )
    not_valid = batches.state != VALID
    rows = fields.undecoded, naming_rows, fields.row[topic_needs_objects[fields.topic] | not_valid]
    return unique(np.concatenate(rows))


@dataclass(slots=True)
class _WindowRecords:
    """Data that all records of a window share."""

    table: Exchanges
    fields: RecordFields
    batches: Batches
    names: TopicNames
    api: Ints = field(init=False)
    client_id: Coded = field(init=False)

    def __post_init__(self) -> None:
        keys = [key for key, _ in RECORD_CARRIERS]
        self.api = np.searchsorted(keys, self.table.api_key[self.fields.row])
        self.client_id = client_ids(self.table, self.fields.row)

    def topics(self) -> tuple[list[str | None], list[str | None]]:
        """Return the known names and ids of topics."""
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
    """Converts records of a window to columns."""

    window: _WindowRecords
    records: Records
    buffers: SliceBuffers
    first_header: Ints = field(init=False)

    def __post_init__(self) -> None:
        count = self.records.header_count
        self.first_header = np.cumsum(count) - count

    def columns(self, part: Ints) -> Columns:
        """Return the columns of some records, in the order of `COLUMNS`."""
        window, fields, batches = self.window, self.window.fields, self.window.batches
        records, headers = self.records, self.records.headers
        batch, offset = records.batch.take(part), records.offset.take(part)
        key = records.key.take(part)
        number = batches.field[batch]
        topics, ids = window.topics()
        attributes = batches.attributes[batch]
        return {
            "connection": Integers(window.table.connection[fields.row][number]),
            "correlation_id": Integers(fields.correlation_id[number]),
            "api": Coded(window.api[number], _APIS),
            "client_id": Coded(window.client_id.codes[number], window.client_id.values),
            "packet": Integers(fields.packet[number] + 1),
            "time_ns": Integers(fields.time_ns[number]),
            "topic": _nullable_coded(fields.topic[number], topics),
            "topic_id": _nullable_coded(fields.topic[number], ids),
            "partition": Integers(fields.partition[number]),
            "offset": Integers(self._offset(part, number, offset)),
            "timestamp_ms": Integers(records.timestamp.take(part)),
            "key": Slices(key, records.key_length.take(part), self.buffers),
            "value": Slices(
                records.value.take(part), records.value_length.take(part), self.buffers
            ),
            "headers": Headers(
                self.first_header[part],
                records.header_count.take(part),
                Slices(headers.key, headers.key_length, self.buffers),
                Slices(headers.value, headers.value_length, self.buffers),
            ),
            "magic": Integers(batches.magic[batch]),
            "codec": Coded(attributes & CODEC_MASK, _CODECS),
            "producer_id": Integers(batches.producer_id[batch]),
            "producer_epoch": Integers(batches.producer_epoch[batch]),
            "sequence": Integers(_sequence(batches, batch, offset)),
            "transactional": Coded(
                (attributes & layout.TRANSACTIONAL != 0).astype(np.int64), (False, True)
            ),
            "control": self._control(attributes, key),
            "status": Coded(window.table.status[fields.row][number].astype(np.int64), STATUS),
            "acks": Integers(fields.acks[number]),
            "error": _errors(fields.error_code[number]),
        }

    def _offset(self, part: Ints, number: Ints, offset: Ints) -> Ints:
        """Return the offsets of records; for produced ones, from the response's base offset."""
        fields, batches, batch = self.window.fields, self.window.batches, self.records.batch
        is_produced = self.window.table.api_key[fields.row[number]] == PRODUCE
        if not is_produced.any():
            return offset
        first = np.searchsorted(batch, batch[part], "left")
        at = records_before(batches.field, batches.record_count)[batch[part]] + part - first
        base = fields.base_offset[number]
        return np.where(is_produced, np.where(base == NONE, NONE, base + at), offset)

    def _control(self, attributes: Ints, key: Ints) -> Coded:
        """Return the types of control records."""
        codes = np.full(len(key), NONE)
        control_rows = np.flatnonzero(attributes & layout.CONTROL)
        keys = [self.buffers.bytes_at(start, 4) for start in key[control_rows].tolist()]
        values = list(dict.fromkeys(map(control_type, keys)))
        codes[control_rows] = [values.index(control_type(each)) for each in keys]
        return Coded(codes, values)


def _nullable_coded(codes: Ints, values: list[str | None]) -> Coded:
    """Return a nullable column."""
    is_null = np.array([value is None for value in values], np.bool_)
    return Coded(np.where(is_null[codes], NONE, codes) if is_null.any() else codes, values)


def _errors(codes: Ints) -> Coded:
    """Return the names of errors; null without a response."""
    indexes, values = distinct(codes)
    is_present = values != NONE
    numbers = np.where(is_present, np.cumsum(is_present) - 1, NONE)
    return Coded(numbers[indexes], [error_name(code) for code in values[is_present].tolist()])


def _sequence(batches: Batches, batch: Ints, offset: Ints) -> Ints:
    """Return the sequence of each record; see `iter_records`."""
    base = batches.base_sequence
    from_offset = (base - batches.base_offset)[batch]
    return np.where((base >= 0)[batch], from_offset + offset & SEQUENCE_MASK, -1)
