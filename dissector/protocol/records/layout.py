"""
The byte layout of records: headers, flags, and offsets of fields; see also `declared`.

The headers are tables of names and sizes. Each is read in two ways: as a Construct, which names the
invalid field, and by one `struct` call, because a field may hold thousands of batches.

Source: KIP-98 (record batch, record), KIP-82 (record headers), KIP-32 (magic 1);
https://kafka.apache.org/documentation/#recordbatch and #messageset.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dissector.protocol.codecs.structs import Fields


class Header:
    """
    The fixed part of a batch or message: big-endian integers, each with its `struct` letter.

    Attributes:
        names: The fields in wire order.
        size: Bytes in all.
    """

    def __init__(self, *fields: tuple[str, str]) -> None:
        self.names = tuple(name for name, _ in fields)
        self._fields = fields
        self._struct = struct.Struct(">" + "".join(letter for _, letter in fields))
        self.size = self._struct.size
        self.unpack_from = self._struct.unpack_from

    def pack(self, batch: Any) -> bytes:
        """
        Write the attributes of an object that have the names of the fields.

        Raises:
            EncodeError: One of them does not fit its size; the path names it.
        """
        try:
            return self._struct.pack(*(getattr(batch, name) for name in self.names))
        except struct.error:
            return bytes(self.construct.build({name: getattr(batch, name) for name in self.names}))

    @property
    def construct(self) -> Fields:
        """The same fields as a Construct."""
        from dissector.protocol.codecs.structs import Fields, Member
        from dissector.protocol.codecs.wire import Number

        return Fields([Member(name, Number(letter)) for name, letter in self._fields])


BATCH = Header(
    ("base_offset", "q"),
    ("batch_length", "i"),
    ("partition_leader_epoch", "i"),
    ("magic", "b"),
    ("crc", "I"),
    ("attributes", "h"),
    ("last_offset_delta", "i"),
    ("base_timestamp", "q"),
    ("max_timestamp", "q"),
    ("producer_id", "q"),
    ("producer_epoch", "h"),
    ("base_sequence", "i"),
    ("records_count", "i"),
)
MESSAGE_0 = Header(
    ("offset", "q"), ("message_size", "i"), ("crc", "I"), ("magic", "b"), ("attributes", "b")
)
MESSAGE_1 = Header(
    ("offset", "q"),
    ("message_size", "i"),
    ("crc", "I"),
    ("magic", "b"),
    ("attributes", "b"),
    ("timestamp", "q"),
)

LENGTH_END = 12
"""Every magic begins with an offset (int64) and the size (int32) of the bytes after it."""
MAGIC_AT = 16
"""Every magic has its magic byte here."""
BATCH_CRC_FROM = 21
"""The CRC-32C of a batch covers the attributes and all after them."""
MESSAGE_CRC_FROM = 16
"""The CRC-32 of a message covers the magic byte and all after it."""
MIN_BATCH_LENGTH = BATCH.size - LENGTH_END
MIN_MESSAGE_SIZE = MESSAGE_0.size - LENGTH_END + 8

TIMESTAMP_TYPE = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40


def zigzag(number: int) -> bytes:
    """Return an integer as Kafka's signed varint."""
    remaining = number << 1 if number >= 0 else ~(number << 1)
    if remaining < 0x80:
        return _ONE_BYTE[remaining]
    out = bytearray()
    while remaining >= 0x80:
        out.append(remaining & 0x7F | 0x80)
        remaining >>= 7
    out.append(remaining)
    return bytes(out)


_ONE_BYTE = [bytes((byte,)) for byte in range(0x80)]


def int64(number: int) -> int:
    """Wrap a sum to 64 bits, as Java's arithmetic does."""
    return (number + (1 << 63) & (1 << 64) - 1) - (1 << 63)
