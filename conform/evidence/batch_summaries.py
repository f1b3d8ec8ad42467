"""
Summaries of the record batches of a window: the fast path, without record objects.

The engine's kernels check all batches of a window at once, and compute the properties of records
that rules need in columns (whether the offsets are in order, the newest timestamp). The slow path
decodes the records of a batch only if it has problems, or if a rule accesses them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dissector.engine.records.batch_table import UNDECIDED, VALID, Batches, last_offset_deltas
from dissector.engine.records.decompressor import iter_payloads
from dissector.engine.records.record_decoder import read_records
from dissector.engine.records.record_locator import RecordFields, find_field_batches, locate_records
from dissector.engine.records.record_windows import MIN_COLUMN_VALUE, PART_RECORDS
from dissector.engine.tables.exchange_table import Exchanges
from dissector.protocol.records import Batch, Record, RecordBatch, parse_records
from dissector.protocol.records.layout import BATCH, LENGTH_END
from dissector.protocol.records_fields import ReadRecords, read_field

Ints: TypeAlias = NDArray[np.int64]

MIN_SUMMARY_BYTES = 1 << 20
"""Windows with fewer bytes of records take the slow path, as loading kernels has a cost."""

_LAST, _NEWEST, _DENSE, _ASCENDING = range(4)


class SummarizedBatch(RecordBatch):
    """
    A valid batch; records are decoded at first access.

    Attributes:
        dense: Whether its offset deltas are 0, 1, 2 and so on.
        ascending: Whether its offset deltas are not negative and increase.
        last_delta: Its last offset delta; -1 without records.
        newest_timestamp: The greatest timestamp of its records; None without records.
    """

    __slots__ = (
        "_data",
        "_decoded_records",
        "ascending",
        "dense",
        "last_delta",
        "newest_timestamp",
    )

    def __init__(self, data: bytes, start: int, summary: Sequence[int]) -> None:
        """Decode the header of the batch at `start`; `summary` is its row of columns."""
        super().__init__(*BATCH.unpack_from(data, start), position=start)
        self._data = data
        self._decoded_records: list[Record] | None = None
        self.dense, self.ascending = bool(summary[_DENSE]), bool(summary[_ASCENDING])
        self.last_delta: int = summary[_LAST] if self.records_count else -1
        self.newest_timestamp: int | None = summary[_NEWEST] if self.records_count else None

    @property
    def records(self) -> list[Record]:
        """The records, decoded at first access."""
        if self._decoded_records is None:
            end = self.position + LENGTH_END + self.batch_length
            (batch,) = parse_records(self._data[self.position : end])
            self._decoded_records = list(batch.records)  # type: ignore[arg-type]
        return self._decoded_records

    @records.setter
    def records(self, records: list[Record]) -> None:
        """Ignore the empty list that the constructor of the base class sets."""


def is_dense(batch: RecordBatch) -> bool:
    """Return whether the offset deltas are 0, 1, 2 and so on."""
    if isinstance(batch, SummarizedBatch):
        return batch.dense
    return all(record.offset_delta == index for index, record in enumerate(batch.records))


def is_ascending(batch: RecordBatch) -> bool:
    """Return whether the offset deltas are not negative and increase."""
    if isinstance(batch, SummarizedBatch):
        return batch.ascending
    previous = -1
    for record in batch.records:
        if record.offset_delta <= previous:
            return False
        previous = record.offset_delta
    return True


def last_delta_of(batch: RecordBatch) -> int:
    """Return the last offset delta of the records; -1 without records."""
    if isinstance(batch, SummarizedBatch):
        return batch.last_delta
    return batch.records[-1].offset_delta if batch.records else -1


def newest_timestamp_of(batch: RecordBatch) -> int | None:
    """Return the greatest timestamp of the records; None without records."""
    if isinstance(batch, SummarizedBatch):
        return batch.newest_timestamp
    return max((record.timestamp for record in batch.records), default=None)


class SummaryColumns(NamedTuple):
    """
    What batches say of their records, a row each; all but the first say nothing of messages.

    Attributes:
        last_offset_delta: The last offset delta by the header of the batch; 0 of a message.
        last_delta: The offset delta of the last record; 0 without records.
        newest_timestamp: The greatest timestamp of the records; 0 without records.
        is_dense: Whether the offset deltas are 0, 1, 2 and so on.
        is_ascending: Whether the offset deltas are not negative and increase.
    """

    last_offset_delta: Ints
    last_delta: Ints
    newest_timestamp: Ints
    is_dense: NDArray[np.bool_]
    is_ascending: NDArray[np.bool_]


class BatchSummaries:
    """
    The valid batches of a window, by `records` field.

    `reader` must be called in the order of the window's rows.

    Attributes:
        fields: The `records` fields of the window.
        batches: Their batches; None if they take the slow path.
        columns: What the batches say of their records.
    """

    def __init__(self, table: Exchanges) -> None:
        self.fields: RecordFields = locate_records(table)
        self.batches: Batches | None = None
        self._rows: list[tuple[int, int, int]] = []
        self._first_row = [0] * (len(table) + 1)
        self._summaries: list[list[int]] = []
        fields, total = self.fields, int(self.fields.length.sum())
        if total < MIN_SUMMARY_BYTES:
            return
        found = self.batches = find_field_batches(table, fields, message_sets=True)
        summaries = _summarize(table, found)
        self.columns = SummaryColumns(
            _last_offset_deltas(table, found),
            *summaries[:_DENSE],
            *(summaries[_DENSE:] != 0),
        )
        numbers = np.arange(len(fields.row))
        is_summarized = found.state == VALID
        is_summarized[found.field[found.magic < 2]] = False
        begin = np.searchsorted(found.field, numbers)
        end = np.searchsorted(found.field, numbers, "right")
        columns = fields.length, np.where(is_summarized, begin, -1), end
        self._rows.extend(zip(*(column.tolist() for column in columns), strict=True))
        self._first_row = np.searchsorted(fields.row, np.arange(len(table) + 1)).tolist()
        self._summaries = summaries.T.tolist()

    def reader(self, row: int) -> ReadRecords:
        """Return the function that decodes the `records` fields of an exchange, in their order."""
        first, end = self._first_row[row : row + 2]
        if first == end:
            return read_field
        return partial(self._read, iter(self._rows[first:end]))

    def _read(
        self, fields: Iterator[tuple[int, int, int]], data: bytes, may_be_cut: bool
    ) -> list[Batch]:
        found = next(fields, None) if data else None
        if found is None:
            return read_field(data, may_be_cut)
        length, begin, end = found
        if begin < 0 or length != len(data):
            return read_field(data, may_be_cut)
        batches: list[Batch] = []
        start = 0
        for summary in self._summaries[begin:end]:
            batch = SummarizedBatch(data, start, summary)
            batches.append(batch)
            start += LENGTH_END + batch.batch_length
        if start < len(data):  # a truncated batch
            batches += _with_positions_from(
                parse_records(data[start:], may_be_cut=may_be_cut), start
            )
        return batches


def _with_positions_from(batches: list[Batch], start: int) -> list[Batch]:
    """Shift the positions of batches that were decoded from a part of a field."""
    for batch in batches:
        batch.position += start
    return batches


def _last_offset_deltas(table: Exchanges, found: Batches) -> Ints:
    """Return a field of each batch's header; 0 for messages, and in fields that are not valid."""
    deltas = np.zeros(len(found), np.int64)
    batches = np.flatnonzero((found.magic == 2) & (found.state[found.field] == VALID))
    deltas[batches] = last_offset_deltas(table, found.start[batches])
    return deltas


def _summarize(table: Exchanges, found: Batches) -> Ints:
    """Return the columns of all batches; fields with unrepresentable values become UNDECIDED."""
    summaries = np.zeros((4, len(found)), np.int64)
    summaries[_DENSE] = summaries[_ASCENDING] = 1
    for part in iter_payloads(table.data, table.carry_over, found, found.field, PART_RECORDS):
        records = read_records(table.data, table.carry_over, found, part)
        if not len(records):
            continue
        first = np.flatnonzero(np.diff(records.batch, prepend=-1))
        batch = records.batch[first]
        offset, timestamp = records.offset, records.timestamp
        is_unclear = (offset < MIN_COLUMN_VALUE) | (timestamp < MIN_COLUMN_VALUE)
        is_unclear &= found.magic[records.batch] == 2  # of messages no column is asked for
        found.state[found.field[records.batch[is_unclear]]] = UNDECIDED
        delta = offset - found.base_offset[records.batch]
        last = np.append(first[1:], len(delta)) - 1
        summaries[_LAST, batch] = delta[last]
        summaries[_NEWEST, batch] = np.maximum.reduceat(timestamp, first)
        expected = np.arange(len(delta)) - np.repeat(first, last - first + 1)
        summaries[_DENSE, batch] = np.logical_and.reduceat(delta == expected, first)
        increases = np.diff(delta, prepend=0) > 0
        increases[first] = delta[first] >= 0
        summaries[_ASCENDING, batch] = np.logical_and.reduceat(increases, first)
    return summaries
