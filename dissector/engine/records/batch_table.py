"""The table of record batches, and the state of the fields that contain them."""

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
"""State of a field: no error so far; an error was found; only the Python reader can decide."""

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
        table: [COLUMN_COUNT, rows]: the columns, by the numbers above; may have unused rows at the
            end.
        field_bytes: Bytes of each field.
        state: State of each field: VALID, INVALID or UNDECIDED. Only a VALID field has all its
            batches here.
        field: Number of the field.
        start: Address of the batch: in `data`, or, from its end on, in the carry-over buffer.
        end: Address behind its last byte.
        attributes: Codec, timestamp type, transactional, control: see `layout`.
        count: Number of records; of a wrapper 0 until it is decompressed.
        magic: 0, 1 or 2.
        payload_start: Address of the payload: the records, the value of a wrapper, or a whole
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
        """Whether each batch is a message that holds other messages."""
        holds_messages: Bools = (self.magic < 2) & (self.payload_start > self.start)
        return holds_messages

    @property
    def is_compressed(self) -> Bools:
        """Whether each batch has a payload to decompress."""
        compressed: Bools = self.attributes & CODEC_MASK != 0
        has_payload = np.where(
            self.magic < 2, self.payload_start > self.start, self.payload_start < self.end
        )
        compressed &= has_payload | (self.magic == 2) & (self.count > 0)
        return compressed

    def __len__(self) -> int:
        return len(self.field)
