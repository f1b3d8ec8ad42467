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
from dissector.engine.records.record_arrays import PayloadArrays, RecordArrays
from dissector.engine.records.record_kernel import (
    COLUMN_COUNT,
    HEADERS,
    KEY,
    KEY_LENGTH,
    OFFSET,
    TIMESTAMP,
    VALUE,
    VALUE_LENGTH,
    read_batches,
)
from dissector.kernel.arrays import Buffers

__all__ = [
    "HEADERS",
    "KEY",
    "KEY_LENGTH",
    "OFFSET",
    "TIMESTAMP",
    "VALUE",
    "VALUE_LENGTH",
    "Records",
    "check_records",
    "read_records",
]

Ints: TypeAlias = NDArray[np.int64]
Bytes: TypeAlias = NDArray[np.uint8]

BLOCK_BYTES = 1 << 19
"""Bytes checked and read together, while they are in the CPU cache."""


@dataclass(slots=True, eq=False, repr=False)
class Records:
    """
    Records in columns, and their headers, in order.

    A key or value is given by its address, NONE if it is null.

    Attributes:
        batch: Number of the batch of each record.
        table: Rows OFFSET, TIMESTAMP (ms), KEY, KEY_LENGTH, VALUE, VALUE_LENGTH and HEADERS (number
            of headers).
        headers: Rows KEY to VALUE_LENGTH, less KEY, of all headers.
    """

    batch: Ints
    table: NDArray[np.int64]
    headers: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.batch)


def check_records(data: Bytes, carry_over: Bytes, batches: Batches, payloads: Payloads) -> None:
    """Validate records, and set the states of their fields."""
    _KernelRun(data, carry_over, batches, payloads).read(
        Records(_ZERO, _NO_TABLE, _NO_TABLE), write=False
    )


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
    out = Records(
        np.repeat(payloads.batch, run.counts),
        np.empty((COLUMN_COUNT, total), np.int64),
        np.empty((4, total // 2 + 64), np.int64),
    )
    return run.read(out, write=True)


_NO_TABLE = np.empty((COLUMN_COUNT, 0), np.int64)
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
        counts = batches.count[payloads.batch]
        is_valid = batches.state[batches.field[payloads.batch]] == VALID
        self.counts = np.where(is_valid, counts, 0)

    def _arrays(self, first: Ints) -> PayloadArrays:
        """Return the payloads; `first` has the row of the first record of each."""
        batches, payloads = self._batches, self._payloads
        arrays = (
            *(batches.table, batches.state),
            *(payloads.batch, payloads.start, payloads.end, first),
        )
        return PayloadArrays._make(arrays)

    def _count_messages(self) -> None:
        """Count the messages of wrappers; uncompiled, their fields are UNDECIDED."""
        state = self._batches.state
        if count_messages.is_compiled:
            count_messages(self._buffers, self._arrays(_ZERO))
        else:
            fields = self._batches.field[self._payloads.batch[self._is_message]]
            state[fields[state[fields] == VALID]] = UNDECIDED

    def read(self, out: Records, *, write: bool) -> Records:
        """Fill the columns; the table of headers grows as needed."""
        first = np.concatenate([_ZERO, np.cumsum(self.counts)])
        if not write:
            first[:] = 0
        arrays = self._arrays(first)
        if self._is_message.any():
            read_messages(self._buffers, arrays, crc32_table(), out.table, int(write))
        done = np.zeros(2, np.int64)
        for until in self._verify_blocks():
            while int(done[0]) < until:
                header_capacity = out.headers.shape[1] if write else -1
                columns = out.table, out.headers
                found = RecordArrays._make(columns)
                read_batches(self._buffers, arrays, found, header_capacity, until, done)
                if int(done[0]) < until:
                    out.headers = _grow(out.headers)
        out.headers = out.headers[:, : int(done[1])]
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


def _grow(table: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a copy of a table with twice the columns."""
    out = np.empty((len(table), table.shape[1] * 2), np.int64)
    out[:, : table.shape[1]] = table
    return out
