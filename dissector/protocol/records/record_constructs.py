"""
Records and legacy messages as Constructs: the readable form of the fast readers.

Source: KIP-98 (record), KIP-82 (record headers);
https://kafka.apache.org/documentation/#messageset.
"""

from __future__ import annotations

from typing import Any

from construct import Construct

from dissector.errors import DecodeError, EncodeError
from dissector.protocol.codecs.structs import Fields, Member
from dissector.protocol.codecs.wire import (
    Bytes,
    CountedArray,
    Text,
    int8,
    int32,
    read_exactly,
)
from dissector.protocol.records.layout import zigzag


class SignedVarint(Construct):  # type: ignore[misc]
    """
    A zigzag integer, seven bits a byte, low bits first: at most 5 bytes for 32 bits, 10 for 64.

    Source: KIP-98, "Message Format"; Kafka's ByteUtils.
    """

    min_bytes = 1

    def __init__(self, bits: int) -> None:
        super().__init__()
        self.bits = bits

    def _parse(self, stream: Any, context: Any, path: Any) -> int:
        start = stream.tell()
        value = 0
        for shift in range(0, self.bits, 7):
            byte = read_exactly(stream, 1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if value >> self.bits:
                    break
                return value >> 1 ^ -(value & 1)
        raise DecodeError(f"varint does not end within {self.bits} bits", position=start)

    def _build(self, obj: Any, stream: Any, context: Any, path: Any) -> Any:
        if not isinstance(obj, int) or not -1 << self.bits - 1 <= obj < 1 << self.bits - 1:
            raise EncodeError(f"{obj!r} is not a varint of {self.bits} bits")
        stream.write(zigzag(obj))
        return obj


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


class HeaderList(CountedArray):
    """The headers of a record, which can't be null."""

    def read_count(self, stream: Any, context: Any, path: Any) -> int:
        """Read the count; see `CountedArray`."""
        start = stream.tell()
        count = super().read_count(stream, context, path)
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
"""A record of magic 2, after its length: the readable form of `record.read_records`."""

MESSAGE_BODY = Fields([Member("key", Bytes(int32)), Member("value", Bytes(int32))])
"""A message of magic 0 or 1, after its header."""
