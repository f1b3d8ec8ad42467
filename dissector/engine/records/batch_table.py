"""The table of record batches, and what is known of the fields they are in."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dissector.protocol.records.compression import CODEC_MASK
from dissector.protocol.records.layout import BATCH

Ints: TypeAlias = NDArray[np.int64]
Bytes: TypeAlias = NDArray[np.uint8]
Bools: TypeAlias = NDArray[np.bool_]

VALID, INVALID, UNDECIDED = range(3)
"""What is known of a field: nothing is wrong so far; something is; only Python can tell."""

HEADER_BYTES = BATCH.size
MIN_RECORD_BYTES = 7
"""Bytes of a record without key, value and headers."""
(
    FIELD,
    START,
    END,
    BASE_OFFSET,
    CRC,
    ATTRIBUTES,
    BASE_TIMESTAMP,
    MAX_TIMESTAMP,
    PRODUCER_ID,
    PRODUCER_EPOCH,
    BASE_SEQUENCE,
    COUNT,
    MAGIC,
    PAYLOAD_START,
) = range(14)
COLUMN_COUNT = 14


class Batches:
    """
    The batches of some fields, a row each, in order.

    Attributes:
        table: The columns, one a row of this array, by the numbers above; there may be room behind.
        field_bytes: Bytes of each field.
        state: Of each field: RIGHT, WRONG or LEFT. Only of a RIGHT one all batches are here.
        field: Number of the field.
        start: Address of the batch: in `data`, or, from its end on, in `held`.
        end: Address behind its last byte.
        attributes: Codec, timestamp type, transactional, control: see `layout`.
        count: Its number of records; not known of wrappers until they are decompressed.
        magic: 0, 1 or 2.
        payload_start: Address of its payload: the records, the value of a wrapper, or a whole
            message.
    """

    def __init__(self, table: NDArray[np.int64], rows: int, size: Ints, state: Bytes) -> None:
        self.table, self.field_bytes, self.state = table, size, state
        self._rows = rows
        self.field: Ints = self.column(FIELD)
        self.start: Ints = self.column(START)
        self.end: Ints = self.column(END)
        self.attributes: Ints = self.column(ATTRIBUTES)
        self.count: Ints = self.column(COUNT)
        self.magic: Ints = self.column(MAGIC)
        self.payload_start: Ints = self.column(PAYLOAD_START)

    def column(self, number: int) -> Ints:
        """Return a column by its number."""
        return self.table[number, : self._rows]

    @property
    def is_wrapper(self) -> Bools:
        """Tell which are messages that hold others."""
        wraps: Bools = (self.magic < 2) & (self.payload_start > self.start)
        return wraps

    @property
    def is_compressed(self) -> Bools:
        """Tell which have a payload that is to be decompressed."""
        packed: Bools = self.attributes & CODEC_MASK != 0
        there = np.where(
            self.magic < 2, self.payload_start > self.start, self.payload_start < self.end
        )
        packed &= there | (self.magic == 2) & (self.count > 0)
        return packed

    def __len__(self) -> int:
        return len(self.field)
