"""
How records look in bytes: the declarations that the rest of this package reads and writes by.

The headers are tables of names and sizes. Each is read in two ways: as a Construct, which names the
field that is wrong, and by one `struct` call, because a field may hold thousands of batches.

Source: KIP-98 (record batch, record), KIP-82 (record headers), KIP-32 (magic 1);
https://kafka.apache.org/documentation/#recordbatch and #messageset.
"""

from __future__ import annotations

import struct
from typing import Any

from construct import Construct

from dissector.errors import DecodeError, EncodeError
from dissector.protocol.structs import Fields, Member
from dissector.protocol.wire import Bytes, Counted, Number, Text, int8, int32, take


class Header:
    """
    The fixed part of a batch or message: big-endian numbers, each with its `struct` letter.

    Attributes:
        names: The fields in wire order.
        construct: The same fields as a Construct.
        size: Bytes in all.
    """

    def __init__(self, *fields: tuple[str, str]) -> None:
        self.names = tuple(name for name, _ in fields)
        self.construct = Fields([Member(name, Number(letter)) for name, letter in fields])
        self._struct = struct.Struct(">" + "".join(letter for _, letter in fields))
        self.size = self._struct.size
        self.unpack_from = self._struct.unpack_from

    def pack(self, batch: Any) -> bytes:
        """
        Write the attributes of an object that are named as the fields are.

        Raises:
            EncodeError: One of them is no number of its size; the path names it.
        """
        try:
            return self._struct.pack(*(getattr(batch, name) for name in self.names))
        except struct.error:
            return bytes(self.construct.build({name: getattr(batch, name) for name in self.names}))


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
"""Every magic begins with an offset (int64) and the size (int32) of what follows it."""
MAGIC_AT = 16
"""Every magic has its magic byte here."""
BATCH_CRC_FROM = 21
"""The CRC-32C of a batch covers the attributes and all after them."""
MESSAGE_CRC_FROM = 16
"""The CRC-32 of a message covers the magic byte and all after it."""
LEAST_BATCH_LENGTH = BATCH.size - LENGTH_END
LEAST_MESSAGE_SIZE = MESSAGE_0.size - LENGTH_END + 8

TIMESTAMP_TYPE = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40


class SignedVarint(Construct):  # type: ignore[misc]
    """
    A zigzag number, seven bits a byte, low bits first: at most 5 bytes for 32 bits, 10 for 64.

    Source: KIP-98, "Message Format"; Kafka's ByteUtils.
    """

    least = 1

    def __init__(self, bits: int) -> None:
        super().__init__()
        self.bits = bits

    def _parse(self, stream: Any, context: Any, path: Any) -> int:
        start = stream.tell()
        value = 0
        for shift in range(0, self.bits, 7):
            byte = take(stream, 1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if value >> self.bits:
                    break
                return value >> 1 ^ -(value & 1)
        raise DecodeError(f"varint does not end within {self.bits} bits", position=start)

    def _build(self, obj: Any, stream: Any, context: Any, path: Any) -> Any:
        if not isinstance(obj, int) or not -1 << self.bits - 1 <= obj < 1 << self.bits - 1:
            raise EncodeError(f"{obj!r} is no varint of {self.bits} bits")
        stream.write(zigzag(obj))
        return obj


def zigzag(number: int) -> bytes:
    """Return a number as Kafka's signed varint."""
    rest = number << 1 if number >= 0 else ~(number << 1)
    if rest < 0x80:
        return _ONE_BYTE[rest]
    out = bytearray()
    while rest >= 0x80:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


_ONE_BYTE = [bytes((byte,)) for byte in range(0x80)]


def int64(number: int) -> int:
    """Bring a sum back into 64 bits, as Java's arithmetic does."""
    return (number + (1 << 63) & (1 << 64) - 1) - (1 << 63)


class HeaderKey(Text):
    """The key of a record header, which can't be null."""

    def _parse(self, stream: Any, context: Any, path: Any) -> str:
        start = stream.tell()
        key: str | None = super()._parse(stream, context, path)
        if key is None:
            raise DecodeError("header key is null", position=start)
        return key

    def _build(self, obj: Any, stream: Any, context: Any, path: Any) -> Any:
        if obj is None:
            raise EncodeError("header key is null")
        return super()._build(obj, stream, context, path)


class HeaderList(Counted):
    """The headers of a record, which can't be null."""

    def count(self, stream: Any, context: Any, path: Any) -> int:
        """Read the count; see `Counted`."""
        start = stream.tell()
        count = super().count(stream, context, path)
        if count < 0:
            raise DecodeError("headers are null", position=start)
        return count


varint, varlong = SignedVarint(32), SignedVarint(64)
_HEADER = Fields([Member("key", HeaderKey(varint)), Member("value", Bytes(varint))])
RECORD = Fields(
    [
        Member("attributes", int8, 0),
        Member("timestamp_delta", varlong, 0),
        Member("offset_delta", varint, 0),
        Member("key", Bytes(varint), None),
        Member("value", Bytes(varint), None),
        Member("headers", HeaderList(varint, _HEADER), ()),
    ]
)
"""A record of magic 2, after its length: the readable form of what `batch.read_records` reads."""

MESSAGE_BODY = Fields([Member("key", Bytes(int32)), Member("value", Bytes(int32))])
"""A message of magic 0 or 1, after its header."""
