"""
Message sets (magic 0 and 1): the contents of `records` fields before Kafka 0.11.

Each message of a set stands alone; a compressed set is the value of a wrapper message. In magic 1
the offsets inside a wrapper are relative, so that a broker need not compress again: the wrapper has
the offset of its last message. In magic 0 they are absolute.

Source: https://kafka.apache.org/documentation/#messageset; KIP-31 (relative offsets), KIP-32
(timestamps); Kafka's AbstractLegacyRecordBatch.java.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, NamedTuple

from dissector.errors import EncodeError, Problem
from dissector.protocol.records import layout
from dissector.protocol.records.batch import timestamp_type
from dissector.protocol.records.compression import CODEC_MASK, codec_name, compress


class LegacyRecord(NamedTuple):
    """
    A message of magic 0 or 1, as a record.

    Attributes:
        offset: In the log, absolute.
        inner_offset: As written: in a wrapper of magic 1 relative to the wrapper's first message.
        message_size: Bytes after this field.
        crc: CRC-32 as written.
        magic: 0 or 1.
        attributes: Codec and timestamp type.
        timestamp: Milliseconds since the epoch, the wrapper's where the broker set it; None in
            magic 0.
        key: None without one.
        value: None is a tombstone.
    """

    offset: int = 0
    inner_offset: int = 0
    message_size: int = 0
    crc: int = 0
    magic: int = 1
    attributes: int = 0
    timestamp: int | None = None
    key: bytes | None = None
    value: bytes | None = None

    @property
    def headers(self) -> tuple[()]:
        """Empty: headers were introduced with magic 2."""
        return ()


@dataclass(slots=True)
class LegacyBatch:
    """
    One message at the top of a message set, and the messages that it wraps.

    Attributes:
        payload: Key and value as captured, after the message's fixed fields, which building writes
            unchanged; None if the records are to be written again, with sizes and CRC.
        timestamp: None in magic 0.
        records: The message itself, or those inside a wrapper; use `with_records` to change them.
        crc_ok: Whether the captured CRC-32 of the message was right.
        problems: Problems, including those of inner messages; positions are in the `records` field.
        position: Where in the field the message begins.
    """

    offset: int = 0
    message_size: int = 0
    crc: int = 0
    magic: int = 1
    attributes: int = 0
    timestamp: int | None = None
    _: KW_ONLY
    payload: bytes | None = None
    records: list[LegacyRecord] = field(default_factory=list)
    crc_ok: bool = True
    problems: list[Problem] = field(default_factory=list)
    position: int = 0

    @property
    def codec(self) -> str:
        """`none`, `gzip`, `snappy`, `lz4`, `zstd`, or `codec 5` for a number without a name."""
        return codec_name(self.attributes)

    @property
    def timestamp_type(self) -> str | None:
        """`CreateTime` or `LogAppendTime`; None in magic 0, which has no timestamps."""
        return timestamp_type(self.attributes) if self.magic else None

    def to_dict(self) -> dict[str, Any]:
        """Return header, its interpretation and records by name, as `--bodies` prints them."""
        out = {name: getattr(self, name) for name in header_of(self.magic).names}
        for name in ("codec", "timestamp_type", "crc_ok"):
            out[name] = getattr(self, name)
        out["records"] = [record._asdict() for record in self.records]
        return out

    def with_records(self, records: Sequence[LegacyRecord]) -> LegacyBatch:
        """Return a message with other records: one, or any number if a codec is set."""
        records = list(records)
        times = [record.timestamp for record in records if record.timestamp is not None]
        create_time = self.magic and not self.attributes & layout.TIMESTAMP_TYPE
        return replace(
            self,
            payload=None,
            records=records,
            offset=records[-1].offset if records else self.offset,
            timestamp=max(times) if create_time and times else self.timestamp,
            crc_ok=True,
            problems=[],
        )

    def to_bytes(self, *, fix_crc: bool = False) -> bytes:
        """
        Return the encoded message.

        Args:
            fix_crc: Compute the CRC-32 even where payload and CRC are captured.

        Raises:
            EncodeError: A field can't be written, or several records have no wrapper.
        """
        payload, message = self.payload, self
        if payload is None:
            payload = self._written()
            size = header_of(self.magic).size - layout.LENGTH_END + len(payload)
            message = replace(self, message_size=size)
        elif not fix_crc:
            return header_of(self.magic).pack(self) + payload
        return with_crc(header_of(self.magic).pack(message) + payload)

    def _written(self) -> bytes:
        """Write key and value from the records: a wrapper's value is their compressed set."""
        from dissector.protocol.records.record_constructs import MESSAGE_BODY

        body: bytes
        codec = self.attributes & CODEC_MASK
        if not codec:
            if len(self.records) != 1:
                raise EncodeError("several messages need a codec to share a wrapper", "records")
            body = MESSAGE_BODY.build(self.records[0]._asdict())
            return body
        if not self.records:
            raise EncodeError("a wrapper holds at least one message", "records")
        first = self.records[0].offset if self.magic else 0
        inner = b"".join(
            replace(
                self,
                offset=record.offset - first,
                attributes=self.attributes & ~CODEC_MASK,
                timestamp=record.timestamp,
                payload=None,
                records=[record],
            ).to_bytes()
            for record in self.records
        )
        body = MESSAGE_BODY.build({"key": None, "value": compress(codec, inner, magic=self.magic)})
        return body


def header_of(magic: int) -> layout.Header:
    """Return the declaration of a message's fixed fields."""
    return layout.MESSAGE_1 if magic else layout.MESSAGE_0


def with_crc(message: bytes) -> bytes:
    """Return the bytes of one message with the correct CRC-32."""
    crc = zlib.crc32(memoryview(message)[layout.MESSAGE_CRC_FROM :])
    return (
        message[: layout.LENGTH_END] + crc.to_bytes(4, "big") + message[layout.MESSAGE_CRC_FROM :]
    )
