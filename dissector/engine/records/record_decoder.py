"""
The records of many batches in columns, read by one kernel.

A field with invalid records loses its VALID state; other fields are not affected.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dissector.engine.records.batch_scanner import verify_crcs
from dissector.engine.records.batch_table import UNDECIDED, VALID, Batches
from dissector.engine.records.checksum import SMALL_BYTES, crc32_table
from dissector.engine.records.decompressor import Payloads
from dissector.engine.records.legacy_decoder import count_messages, read_messages
from dissector.engine.records.record_arrays import PayloadArrays, RecordColumns
from dissector.engine.records.record_kernel import read_batches
from dissector.kernel.arrays import Buffers
from dissector.kernel.named_rows import dtype_of
from dissector.protocol.records.payload_kernel import HeaderColumns, ReadProgress

Ints: TypeAlias = NDArray[np.int64]
Bytes: TypeAlias = NDArray[np.uint8]

BLOCK_BYTES = 1 << 19
"""Bytes checked and read together, while they are in the CPU cache."""


@dataclass(slots=True, eq=False, repr=False)
class RecordHeaders:
    """
    The headers of records in columns, in order.

    Attributes:
        key: Address of the key.
        key_length: Its bytes.
        value: Address of the value; NONE if it is null.
        value_length: Its bytes.
    """

    key: Ints
    key_length: Ints
    value: Ints
    value_length: Ints

    def __len__(self) -> int:
        return len(self.key)

    @property
    def columns(self) -> HeaderColumns:
        """The columns, as kernels take them."""
        return HeaderColumns._make(getattr(self, name) for name in HeaderColumns._fields)


@dataclass(slots=True, eq=False, repr=False)
class Records:
    """
    Records in columns, and their headers, in order.

    Attributes:
        batch: Number of the batch of each record.
        offset: Its offset.
        timestamp: Its time (ms).
        key: Address of its key; NONE if it is null.
        key_length: Bytes of the key.
        value: Address of its value; NONE if it is null.
        value_length: Bytes of the value.
        header_count: Number of its headers.
        headers: All headers.
    """

    batch: Ints
    offset: Ints
    timestamp: Ints
    key: Ints
    key_length: Ints
    value: Ints
    value_length: Ints
    header_count: Ints
    headers: RecordHeaders

    def __len__(self) -> int:
        return len(self.batch)

    @property
    def columns(self) -> RecordColumns:
        """The columns of records, as kernels take them."""
        return RecordColumns._make(getattr(self, name) for name in RecordColumns._fields)


def _new_records(batch: Ints, records: int, headers: int) -> Records:
    """Return columns with space for records and headers."""
    table = np.empty((len(RecordColumns._fields), records), np.int64)
    of_headers = RecordHeaders(*np.empty((len(HeaderColumns._fields), headers), np.int64))
    return Records(batch, **RecordColumns._make(table)._asdict(), headers=of_headers)


def check_records(data: Bytes, carry_over: Bytes, batches: Batches, payloads: Payloads) -> None:
    """Validate records, and set the states of their fields."""
    out = _new_records(_ZERO, 0, 0)
    _KernelRun(data, carry_over, batches, payloads).read(out, write=False)


def read_records(data: Bytes, carry_over: Bytes, batches: Batches, payloads: Payloads) -> Records:
    """
    Read records.

    Args:
        data: The bytes of a window.
        carry_over: Bytes carried over from earlier windows.
        batches: The batches; fields with invalid records lose their VALID state.
        payloads: Addresses of the payloads.

    Returns:
        The records of all these batches; the numbers of fields that are not VALID are undefined.
    """
    run = _KernelRun(data, carry_over, batches, payloads)
    total = int(run.counts.sum())
    out = _new_records(np.repeat(payloads.batch, run.counts), total, total // 2 + 64)
    return run.read(out, write=True)


_ZERO = np.zeros(1, np.int64)


class _KernelRun:
    """One run of the kernels over some batches."""

    def __init__(
        self, data: Bytes, carry_over: Bytes, batches: Batches, payloads: Payloads
    ) -> None:
        self._data, self._carry_over, self._batches, self._payloads = (
            data,
            carry_over,
            batches,
            payloads,
        )
        buffers = data, carry_over, payloads.arena
        self._buffers = Buffers._make(buffers)
        self._is_message = batches.magic[payloads.batch] < 2
        if self._is_message.any():
            self._count_messages()
        counts = batches.record_count[payloads.batch]
        is_valid = batches.state[batches.field[payloads.batch]] == VALID
        self.counts = np.where(is_valid, counts, 0)

    def _arrays(self, first: Ints) -> PayloadArrays:
        """Return the payloads; `first` has the row of the first record of each."""
        payloads = self._payloads
        columns = payloads.batch, payloads.start, payloads.end, first
        return PayloadArrays._make((self._batches.state, *columns))

    def _count_messages(self) -> None:
        """Count the messages of wrappers; uncompiled, their fields are UNDECIDED."""
        state = self._batches.state
        if count_messages.is_compiled:
            count_messages(self._buffers, self._arrays(_ZERO), self._batches.columns)
        else:
            fields = self._batches.field[self._payloads.batch[self._is_message]]
            state[fields[state[fields] == VALID]] = UNDECIDED

    def read(self, out: Records, *, write: bool) -> Records:
        """Fill the columns; those of headers grow as needed."""
        first = np.concatenate([_ZERO, np.cumsum(self.counts)])
        if not write:
            first[:] = 0
        arrays, batches = self._arrays(first), self._batches.columns
        if self._is_message.any():
            columns = batches, crc32_table(), out.columns
            read_messages(self._buffers, arrays, *columns, int(write))
        progress = np.zeros((), dtype_of(ReadProgress))
        for until in self._verify_blocks():
            while int(progress["batch"]) < until:
                progress["header_capacity"] = len(out.headers) if write else -1
                found = batches, out.columns, out.headers.columns
                read_batches(self._buffers, arrays, *found, until, progress)
                if int(progress["batch"]) < until:
                    out.headers = _resized(out.headers, 2 * len(out.headers))
        if write:
            out.headers = _resized(out.headers, int(progress["header"]))
        return out

    def _verify_blocks(self) -> Iterator[int]:
        """Check the CRCs of large uncompressed payloads; yield the last completed batch."""
        payloads = self._payloads
        size = payloads.end - payloads.start
        is_large = (size >= SMALL_BYTES) & (
            payloads.start < len(self._data) + len(self._carry_over)
        )
        is_large &= ~self._is_message
        begin = 0
        if is_large.any():
            block = np.cumsum(np.where(is_large, size, 0)) // BLOCK_BYTES
            for end in (*(np.flatnonzero(np.diff(block)) + 1).tolist(), len(size)):
                chosen = payloads.batch[begin:end][is_large[begin:end]]
                verify_crcs(self._data, self._carry_over, self._batches, chosen)
                yield end
                begin = end
        else:
            yield len(size)


def _resized(headers: RecordHeaders, size: int) -> RecordHeaders:
    """Return headers with a number of rows; a copy if these are more."""
    columns: list[Ints] = [getattr(headers, name) for name in HeaderColumns._fields]
    if size <= len(headers):
        return RecordHeaders(*(each[:size] for each in columns))
    table = np.empty((len(columns), size), np.int64)
    table[:, : len(headers)] = columns
    return RecordHeaders(*table)
