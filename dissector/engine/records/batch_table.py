"""The table of record batches, and the state of the fields that contain them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dissector.engine.tables.exchange_table import Exchanges
from dissector.kernel.arrays import I64
from dissector.protocol.records.compression import CODEC_MASK
from dissector.protocol.records.layout import BATCH

Ints: TypeAlias = NDArray[np.int64]
Bytes: TypeAlias = NDArray[np.uint8]
Bools: TypeAlias = NDArray[np.bool_]

VALID, INVALID, UNDECIDED = range(3)
"""State of a field: no error so far; an error was found; only the Python reader can decide."""

HEADER_BYTES = BATCH.size

_LAST_OFFSET_DELTA_AT = 23
"""Its place in a batch of magic 2: two halves of 16 bits."""


class BatchColumns(NamedTuple):
    """The columns of `Batches`, as kernels take them; they may have unused rows at the end."""

    field: I64
    start: I64
    end: I64
    base_offset: I64
    crc: I64
    attributes: I64
    base_timestamp: I64
    max_timestamp: I64
    producer_id: I64
    producer_epoch: I64
    base_sequence: I64
    record_count: I64
    magic: I64
    payload_start: I64


@dataclass(slots=True, eq=False, repr=False)
class Batches:
    """
    The batches of some fields, a row each, in order.

    Attributes:
        field: Number of the field.
        start: Address of the batch: in `data`, or, from its end on, in the carry-over buffer.
        end: Address behind its last byte.
        base_offset: Its base offset; of a message 0, of a wrapper the base of its messages.
        crc: The CRC that it has.
        attributes: Codec, timestamp type, transactional, control: see `layout`.
        base_timestamp: Its first timestamp; of a message its timestamp.
        max_timestamp: Its highest timestamp; of a message 0.
        producer_id: Its producer; -1 for none, and so are the next two.
        producer_epoch: The epoch of the producer.
        base_sequence: The sequence of its first record.
        record_count: Number of records; of a wrapper 0 until it is decompressed.
        magic: 0, 1 or 2.
        payload_start: Address of the payload: the records, the value of a wrapper, or a whole
            message.
        field_bytes: Bytes of each field.
        state: State of each field: VALID, INVALID or UNDECIDED. Only a VALID field has all its
            batches here.
    """

    field: Ints
    start: Ints
    end: Ints
    base_offset: Ints
    crc: Ints
    attributes: Ints
    base_timestamp: Ints
    max_timestamp: Ints
    producer_id: Ints
    producer_epoch: Ints
    base_sequence: Ints
    record_count: Ints
    magic: Ints
    payload_start: Ints
    field_bytes: Ints
    state: Bytes

    @property
    def columns(self) -> BatchColumns:
        """The columns, as kernels take them."""
        return BatchColumns._make(getattr(self, name) for name in BatchColumns._fields)

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
        compressed &= has_payload | (self.magic == 2) & (self.record_count > 0)
        return compressed

    def __len__(self) -> int:
        return len(self.field)


def last_offset_deltas(table: Exchanges, starts: Ints) -> Ints:
    """Return the last offset deltas of batches of magic 2 that begin at these places."""
    at = starts + _LAST_OFFSET_DELTA_AT
    values: Ints = table.int16_at(at) << 16 | table.int16_at(at + 2) & 0xFFFF
    return values
