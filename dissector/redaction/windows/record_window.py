"""
Replaces the records of many fields at once, in a copy of their bytes.

Batches are located, checked and decompressed as for columns of records; their contents become
marks, and compressed batches are compressed again to their length. Fields with anything unusual
(damage, wrong checksums, message sets, control records, an incomplete batch) are left to
`RecordRedactor`, which gives the same bytes for those that are replaced here.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dissector.engine.records.batch_scanner import find_batches, max_bytes
from dissector.engine.records.batch_table import INVALID, UNDECIDED, VALID, Batches
from dissector.engine.records.checksum import crc32c_table
from dissector.engine.records.decompressor import Payloads, iter_payloads
from dissector.engine.records.record_decoder import Records, read_records
from dissector.engine.tables.exchange_table import Ints
from dissector.kernel.keccak import LANES, RATE
from dissector.protocol.field_roles import ValueKind
from dissector.protocol.records import layout
from dissector.protocol.records.compression import CODEC_MASK
from dissector.redaction.compression.same_length import SameLength
from dissector.redaction.messages.record_redactor import (
    MARKS,
    MAX_LENGTH,
    MAX_OFFSET,
    PRODUCER_ID_AT,
)
from dissector.redaction.messages.values import ValueRedactor
from dissector.redaction.pseudonyms.distinct_contents import (
    Bools,
    Bytes,
    Places,
    replace_contents,
)
from dissector.redaction.windows.content_kernels import (
    Sponge,
    mark_contents,
    shorten_marks,
    write_crcs,
)

_NO_BYTES = np.zeros(0, np.uint8)
_PORTION_RECORDS = 100_000
"""Approximate number of records whose places are held at once."""


class RecordWindow:
    """
    Replaces records in columns.

    Attributes:
        lost_batches: Number of batches that became zeros, because no replacement had their length.
    """

    def __init__(self, values: ValueRedactor, same_length: SameLength) -> None:
        self.lost_batches = 0
        self._same_length = same_length
        self._values = values
        head = np.frombuffer(values.pseudonyms.content_head, np.uint8)
        arrays = head, np.zeros(LANES, np.int64), np.zeros(RATE, np.uint8)
        self._sponge = Sponge._make(arrays)

    def take_lost_batches(self) -> int:
        """Return the number of lost batches since the last call."""
        count, self.lost_batches = self.lost_batches, 0
        return count

    def replace(self, data: Bytes, at: Ints, length: Ints) -> Bools:
        """
        Replace the records of fields.

        Args:
            data: The bytes, which are changed.
            at: Where each field begins.
            length: Its bytes.

        Returns:
            Which fields are replaced; the bytes of others are undefined.
        """
        batches = find_batches(data, _NO_BYTES, at, length, np.zeros(len(at), np.bool_))
        _refuse_unusual(batches)
        for payloads in iter_payloads(data, _NO_BYTES, batches, batches.field, _PORTION_RECORDS):
            payloads.arena = payloads.arena.copy()
            records = read_records(data, _NO_BYTES, batches, payloads)
            _refuse_large(batches, payloads)
            portion = _Portion(data, batches, payloads, records)
            self._names(portion)
            contents = portion.contents()
            mark_contents(data, payloads.arena, contents.at, contents.length, self._sponge)
            self._compress(portion, contents)
            self._finish(portion)
        is_done: Bools = batches.state == VALID
        return is_done

    def _names(self, portion: _Portion) -> None:
        """Replace the keys of headers."""

        def replaced(name: bytes) -> bytes:
            text = name.decode("utf-8", "surrogateescape")
            new = self._values.text(ValueKind.METADATA, text, {})
            return new.encode("utf-8", "surrogateescape")

        headers = portion.records.headers
        rows = np.flatnonzero(portion.is_valid_header & (headers.key_length > 0))
        places = Places(headers.key[rows], headers.key_length[rows])
        buffers = portion.data, portion.payloads.arena
        is_done = replace_contents(buffers, places, places.start, [replaced], buffers)
        batches = portion.batches
        batches.state[batches.field[portion.batch_of_header[rows[~is_done]]]] = INVALID

    def _compress(self, portion: _Portion, contents: _Contents) -> None:
        """Write the replaced payloads of compressed batches."""
        payloads, batches, base = portion.payloads, portion.batches, len(portion.data)
        batch = payloads.batch
        is_chosen = (payloads.start >= base) & (batches.state[batches.field[batch]] == VALID)
        rows = np.flatnonzero(is_chosen)
        columns = (
            payloads.start[rows] - base,
            payloads.end[rows] - base,
            batch[rows],
            batches.payload_start[batch[rows]],
            batches.end[batch[rows]],
            batches.attributes[batch[rows]] & CODEC_MASK,
        )
        for begin, end, number, start, stop, codec in zip(
            *(each.tolist() for each in columns), strict=True
        ):
            old = portion.data[start:stop].tobytes()
            new: bytes | None = None
            for mark_bytes in MARKS:
                if mark_bytes != MARKS[0]:
                    at, length = contents.of(number)
                    shorten_marks(payloads.arena, at - base, length, mark_bytes)
                new = self._same_length.find(codec, payloads.arena[begin:end].tobytes(), old)
                if new is not None:
                    break
            else:
                self.lost_batches += 1
            portion.data[start:stop] = np.frombuffer(new or bytes(stop - start), np.uint8)

    def _finish(self, portion: _Portion) -> None:
        """Write the producers and the checksums of all batches."""
        batches, data = portion.batches, portion.data
        chosen = portion.payloads.batch
        chosen = chosen[batches.state[batches.field[chosen]] == VALID]
        start, producer = batches.start[chosen], batches.producer_id[chosen]
        if not self._values.keeps(ValueKind.PRODUCER_ID):
            has_one = producer >= 0
            distinct, number = np.unique(producer[has_one], return_inverse=True)
            replace = self._values.pseudonyms.producer_id
            new = np.array([*map(replace, distinct.tolist())], ">i8").view(np.uint8).reshape(-1, 8)
            data[start[has_one][:, None] + np.arange(PRODUCER_ID_AT, PRODUCER_ID_AT + 8)] = new[
                number
            ]
        write_crcs(data, start, batches.end[chosen], crc32c_table())


class _Contents:
    """The keys, values and values of headers of a portion, which are replaced by marks."""

    def __init__(self, at: Ints, length: Ints, batch: Ints) -> None:
        self.at = at
        self.length = length
        self._batch = batch
        self._order: Ints | None = None

    def of(self, batch: int) -> tuple[Ints, Ints]:
        """Return the places and lengths of those of a batch."""
        if self._order is None:
            self._order = np.argsort(self._batch, kind="stable")
        first, last = np.searchsorted(self._batch, (batch, batch + 1), sorter=self._order)
        rows = self._order[first:last]
        return self.at[rows], self.length[rows]


class _Portion:
    """Batches that are replaced at once; the bytes of compressed ones are in the arena."""

    def __init__(self, data: Bytes, batches: Batches, payloads: Payloads, records: Records) -> None:
        self.data = data
        self.batches = batches
        self.payloads = payloads
        self.records = records
        is_valid = batches.state[batches.field[records.batch]] == VALID
        count = records.header_count
        self.batch_of_header = np.repeat(records.batch, count)
        self.is_valid_header = np.repeat(is_valid, count)
        self._is_valid = is_valid

    def contents(self) -> _Contents:
        """Return the contents of valid fields."""
        records, headers = self.records, self.records.headers
        columns: Sequence[tuple[Ints, Ints, Ints, Bools]] = (
            (records.key, records.key_length, records.batch, self._is_valid),
            (records.value, records.value_length, records.batch, self._is_valid),
            (headers.value, headers.value_length, self.batch_of_header, self.is_valid_header),
        )
        chosen = [
            tuple(each[is_valid & (length > 0)] for each in (at, length, batch))
            for at, length, batch, is_valid in columns
        ]
        return _Contents(*(np.concatenate(each) for each in zip(*chosen, strict=True)))


def _refuse_unusual(batches: Batches) -> None:
    """Leave fields to `RecordRedactor` that it does not replace by marks alone."""
    is_unusual = (batches.attributes & layout.CONTROL != 0) | (batches.magic != 2)
    is_unusual |= (batches.base_offset < -1) | (batches.base_offset >= MAX_OFFSET)
    is_unusual |= batches.end - batches.start - layout.LENGTH_END >= MAX_LENGTH
    batches.state[batches.field[is_unusual]] = UNDECIDED


def _refuse_large(batches: Batches, payloads: Payloads) -> None:
    """Leave fields to `RecordRedactor` with batches beyond the limits of a single one."""
    batch = payloads.batch
    limit = max_bytes(batches.end[batch] - batches.payload_start[batch])
    is_large = payloads.end - payloads.start > limit
    is_large &= batches.attributes[batch] & CODEC_MASK != 0
    batches.state[batches.field[batch[is_large]]] = UNDECIDED
