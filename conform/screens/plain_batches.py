"""
Finds the exchanges whose record batches all keep every rule on batches, in columns.

A batch is plain if it is sound, and none of its header fields, nor the order and the times of its
records, can break a rule. The rules count it (`Rule.plain_batch`), and make no object of it; an
exchange with any other batch has all of its batches judged one by one. A plain batch may have a
`HeaderFault`, which concerns one rule alone: that judges its header.

A message of a message set (magic 0 and 1) is a batch too, and plain in the versions of Produce and
Fetch that only have such. No rule on batches judges what a broker cut off behind the first batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from conform.evidence.batch_summaries import BatchSummaries
from conform.registry.rule_screen import (
    NO_FAULT,
    BatchShape,
    FieldPlace,
    HeaderFault,
    Limits,
    ScreenTest,
)
from conform.registry.screened_columns import Bools, FieldBatches
from dissector.engine.records.batch_table import VALID, Batches
from dissector.engine.tables.exchange_table import Exchanges
from dissector.protocol.headers import FETCH, PRODUCE
from dissector.protocol.records.compression import CODEC_IDS, CODEC_MASK, CODECS
from dissector.protocol.records.layout import (
    DELETE_HORIZON,
    MAGIC_AT,
    TIMESTAMP_TYPE,
    TRANSACTIONAL,
)

Ints: TypeAlias = NDArray[np.int64]

_PLAIN_BITS = CODEC_MASK | TRANSACTIONAL | DELETE_HORIZON
_ZSTD = CODEC_IDS["zstd"]
_FIRST_PRODUCE, _FIRST_PRODUCE_OF_ZSTD = 3, 7
_FIRST_FETCH, _FIRST_FETCH_OF_ZSTD = 4, 10
_KEY, _MAGIC, _CODEC = 6, 4, 1
_MAGIC_MASK = 3
"""Bits of a shape's number below the API, the magic and the codec."""

_USED_BITS_OF_MESSAGES = CODEC_MASK, CODEC_MASK | TIMESTAMP_TYPE
"""Attributes of messages by magic."""
_LAST_FETCH_OF_MAGIC_0 = 1
_NO_OFFSET = _NO_BATCH = -1
_MAX_OFFSET = 2**62
"""What is added to larger offsets, positive or negative, may not fit columns."""


def _has_transactional_id(place: FieldPlace) -> Limits | None:
    is_id = place.declared.name == "transactional_id" and not place.is_item
    return (0, 2**31) if is_id else None


CANONICAL = ScreenTest()
NAMES_TRANSACTION = ScreenTest(_has_transactional_id)
"""What exchanges with plain batches must pass; the second, if produced ones are transactional."""


class PlainBatches:
    """
    The plain batches of a window.

    Attributes:
        needed: Of each exchange, the tests that it must pass for its batches to be plain, as bits;
            all bits if they are not.
        fields: What screens test of the batches of each `records` field.
        faults: Of each exchange, the faults in the headers of its plain batches.
        is_plain: Of each exchange, whether all its batches are plain, if it passes these tests.
        is_idempotent: Of each exchange, whether a batch has a producer id.
        is_transactional: Of each exchange, whether a batch belongs to a transaction.
    """

    def __init__(
        self, table: Exchanges, summaries: BatchSummaries, bits: Mapping[ScreenTest, int]
    ) -> None:
        fields, batches = summaries.fields, summaries.batches
        needed = np.full(len(table), bits.get(CANONICAL, -1), np.int64)
        faults = np.zeros(len(table), np.int64)
        is_plain = np.zeros(len(fields.row), np.bool_)
        self._row = self._shape = np.zeros(0, np.int64)
        if batches is not None and len(batches):
            self._row = fields.row[batches.field]
            key = table.api_key[self._row]
            is_transactional = batches.attributes & TRANSACTIONAL != 0
            is_plain = batches.state == VALID
            end = _ends(batches, len(fields.row))
            is_cut = (table.api_key[fields.row] == FETCH) & (end != _NO_BATCH)
            is_plain &= is_cut | (end == fields.start + fields.length)
            is_plain[batches.field[~_plain(table, summaries, batches, self._row)]] = False
            needed[self._row[is_transactional & (key == PRODUCE)]] |= bits.get(
                NAMES_TRANSACTION, -1
            )
            has_faults = (key == PRODUCE) & (batches.magic == 2)
            found = np.where(has_faults, _header_faults(batches), NO_FAULT)
            np.bitwise_or.at(faults, self._row, found)
            codec = batches.attributes & CODEC_MASK
            self._shape = key << _KEY | batches.magic << _MAGIC | codec << _CODEC
            self._shape |= is_transactional
        needed[fields.row[~is_plain]] = -1
        self.needed: list[int] = needed.tolist()
        self.faults: list[int] = faults.tolist()
        self.fields = _field_batches(table, is_plain, summaries)
        self.is_plain = np.ones(len(table), np.bool_)
        self.is_plain[fields.row[~is_plain]] = False
        self.is_idempotent, self.is_transactional = np.zeros((2, len(table)), np.bool_)
        self.is_idempotent[fields.row[self.fields.is_idempotent]] = True
        if batches is not None:
            in_transaction = batches.attributes & TRANSACTIONAL != 0
            self.is_transactional[fields.row[batches.field[in_transaction]]] = True

    def count(self, rows: list[int]) -> list[tuple[BatchShape, int]]:
        """Return how many batches of each shape some exchanges have."""
        if not len(self._row):
            return []
        is_chosen = np.zeros(len(self.needed), np.bool_)
        is_chosen[rows] = True
        counts = np.bincount(self._shape[is_chosen[self._row]])
        return [(_shape_of(each), int(counts[each])) for each in np.flatnonzero(counts).tolist()]


def _shape_of(number: int) -> BatchShape:
    magic, codec = number >> _MAGIC & _MAGIC_MASK, number >> _CODEC & CODEC_MASK
    return BatchShape(number >> _KEY, magic, codec, bool(number & 1))


def _field_batches(table: Exchanges, is_plain: Bools, summaries: BatchSummaries) -> FieldBatches:
    """Return the columns of the batches of each field."""
    count = len(is_plain)
    counts, last_base, first_end = np.zeros((3, count), np.int64)
    is_ascending, is_idempotent = np.ones(count, np.bool_), np.zeros(count, np.bool_)
    batches = summaries.batches
    if batches is not None and len(batches):
        first = np.flatnonzero(np.diff(batches.field, prepend=-1))
        field = batches.field[first]
        is_message = batches.magic < 2
        base = np.where(is_message, _NO_OFFSET, batches.base_offset)
        end = batches.base_offset + summaries.columns.last_offset_delta
        end[is_message] = _message_offsets(table, batches.start[is_message])
        is_above = np.append(True, end[1:] > end[:-1])
        is_above[first] = True
        counts = np.bincount(batches.field, minlength=count)
        last_base[field] = np.maximum.reduceat(base, first)
        first_end[field] = end[first]
        is_ascending[field] = np.logical_and.reduceat(is_above, first)
        is_idempotent[field] = np.logical_or.reduceat(batches.producer_id >= 0, first)
    return FieldBatches(
        summaries.fields.start,
        summaries.fields.acks,
        is_plain,
        counts,
        last_base,
        first_end,
        is_ascending,
        is_idempotent,
    )


def _message_offsets(table: Exchanges, starts: Ints) -> Ints:
    """Return the offsets in the headers of messages that begin at these places."""
    offsets: Ints = table.int16_at(starts)
    for at in range(2, 8, 2):
        offsets = offsets << 16 | table.int16_at(starts + at) & 0xFFFF
    return offsets


def _ends(batches: Batches, fields: int) -> Ints:
    """Return the end of the last batch of each field."""
    ends = np.full(fields, _NO_BATCH, np.int64)
    ends[batches.field] = batches.end
    return ends


def _header_faults(batches: Batches) -> Ints:
    """Return the faults in the headers of batches, were they produced ones."""
    producer = batches.producer_id, batches.producer_epoch, batches.base_sequence
    lowest, highest = np.minimum.reduce(producer), np.maximum.reduce(producer)
    is_consistent = (lowest >= 0) | ((lowest == -1) & (highest == -1))
    faults: Ints = np.zeros(len(batches), np.int64)
    faults[batches.base_offset != 0] |= HeaderFault.BASE_OFFSET
    faults[~is_consistent] |= HeaderFault.PRODUCER
    return faults


def _plain(table: Exchanges, summaries: BatchSummaries, batches: Batches, row: Ints) -> Bools:
    """Return which of the batches of sound fields keep every rule."""
    plain = _plain_of_magic_2(table, summaries, batches, row)
    messages = np.flatnonzero(batches.magic < 2)
    plain[messages] = _plain_messages(table, batches, messages, row[messages])
    return plain


def _plain_messages(table: Exchanges, batches: Batches, chosen: Ints, row: Ints) -> Bools:
    """Return which of some messages of sound fields keep every rule."""
    key, version, magic = table.api_key[row], table.api_version[row], batches.magic[chosen]
    codec = batches.attributes[chosen] & CODEC_MASK
    attributes = table.int16_at(batches.start[chosen] + MAGIC_AT) & 0xFF
    plain: Bools = attributes & ~np.array(_USED_BITS_OF_MESSAGES)[magic] == 0
    plain &= np.isin(codec, list(CODECS)) & (codec != _ZSTD)
    is_new = (magic > 0) & (version <= _LAST_FETCH_OF_MAGIC_0)
    produced = (key == PRODUCE) & (version < _FIRST_PRODUCE)
    fetched = (key == FETCH) & (version < _FIRST_FETCH) & ~is_new
    plain &= produced | fetched
    return plain


def _plain_of_magic_2(
    table: Exchanges, summaries: BatchSummaries, batches: Batches, row: Ints
) -> Bools:
    """Return the same of batches of magic 2."""
    key, version = table.api_key[row], table.api_version[row]
    codec = batches.attributes & CODEC_MASK
    last = batches.record_count - 1
    summary, last_offset_delta = summaries.columns, summaries.columns.last_offset_delta
    is_empty = batches.record_count <= 0
    plain: Bools = (batches.magic == 2) & (batches.attributes & ~_PLAIN_BITS == 0)
    plain &= np.isin(codec, list(CODECS))
    plain &= (batches.base_offset > -_MAX_OFFSET) & (batches.base_offset < _MAX_OFFSET)
    plain &= is_empty | (summary.newest_timestamp == batches.max_timestamp)
    is_transactional = batches.attributes & TRANSACTIONAL != 0
    plain &= ~is_transactional | (batches.producer_id >= 0)

    produced = summary.is_dense & (last_offset_delta == last) & ~is_empty
    produced &= version >= _FIRST_PRODUCE
    produced &= (codec != _ZSTD) | (version >= _FIRST_PRODUCE_OF_ZSTD)

    fetched = summary.is_ascending & (last_offset_delta >= last)
    fetched &= is_empty | (last_offset_delta >= summary.last_delta)
    is_old = (version < _FIRST_FETCH) | ((codec == _ZSTD) & (version < _FIRST_FETCH_OF_ZSTD))
    fetched &= (key != FETCH) | ~is_old
    # A transaction's batch is compared with those of the producer before it.
    fetched &= ~is_transactional | (np.diff(batches.field, prepend=-1) != 0)
    return plain & np.where(key == PRODUCE, produced, fetched)
