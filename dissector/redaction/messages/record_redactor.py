"""
Replaces keys, values and headers of records, in batches that keep their size.

Null stays null, and the same content becomes the same. Records of Kafka's own topics and control
records are read field by field. Compressed records are compressed again to the same length; without
one, the batch becomes zeros. A CRC that was wrong stays wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from dissector.engine.records.batch_scanner import key_and_value
from dissector.protocol.embedded.control_payloads import decode_control
from dissector.protocol.embedded.own_topics import DecodedRecord, decode_record
from dissector.protocol.embedded.reading import Embedded
from dissector.protocol.field_roles import ValueKind
from dissector.protocol.records import layout, message_set
from dissector.protocol.records.batch import with_crc
from dissector.protocol.records.compression import CODEC_MASK, decompress
from dissector.protocol.records.limits import DEFAULT, Budget
from dissector.protocol.records.payload_kernel import NULL, read_rows
from dissector.redaction.compression.same_length import SameLength
from dissector.redaction.messages.structured_values import StructuredValues
from dissector.redaction.messages.values import ValueRedactor
from dissector.values.carriers.schema_headers import NAMING_HEADERS

MARKS = (8, 4, 2, 0)
"""Bytes of the keyed marks of contents, until compressed records are short enough."""

PRODUCER_ID_AT, _PRODUCER_ID_BYTES = 43, 8
_CRC_AT, _MESSAGE_CRC_AT = 17, 12
_MAX_NESTING = 2
MAX_OFFSET, MAX_LENGTH = 1 << 56, 1 << 30
"""Larger numbers do not begin a batch: text, for example."""


class _Level(NamedTuple):
    """
    Where batches are.

    Attributes:
        topic: The name of their topic, if it is known.
        depth: Number of enclosing wrappers.
        mark_bytes: Bytes of the marks of contents.
    """

    topic: str | None
    depth: int
    mark_bytes: int


class _Batch(NamedTuple):
    """The declarations that read the records of a batch."""

    topic: str | None
    is_control: bool


class _Place(NamedTuple):
    """Where a key or a value lies; its length is NULL for null."""

    start: int
    length: int

    def of(self, data: bytes) -> bytes | None:
        return data[self.start : self.start + self.length] if self.length >= 0 else None


class _Parts(NamedTuple):
    """Where the key and the value of a record lie, its headers, and its batch."""

    places: tuple[_Place, _Place]
    headers: Mapping[str, bytes]
    batch: _Batch


class RecordRedactor:
    """
    Replaces the contents of `records` fields.

    Attributes:
        lost_batches: Number of batches that became zeros, because no replacement had their length.
        structured: Replaces what a schema reads so that it still does; None: as all other contents.
        same_length: Compresses replaced records.
    """

    def __init__(self, values: ValueRedactor, redact_embedded: Callable[[Embedded], bytes]) -> None:
        self.lost_batches = 0
        self.structured: StructuredValues | None = None
        self.same_length = SameLength()
        self._values = values
        self._records_left = 0
        self._redact_embedded = redact_embedded

    def redact(self, data: bytes, topic: str | None) -> bytes:
        """
        Return the content of a field with other records.

        Args:
            data: Batches one after the other; the last may be incomplete.
            topic: The name of their topic, if it is known.
        """
        self._records_left = DEFAULT.records_of(len(data))
        return self._batches(data, _Level(topic, 0, MARKS[0]))

    def _batches(self, data: bytes, level: _Level) -> bytes:
        out, at = bytearray(), 0
        # Beyond the limit readers show no records either.
        while at < len(data) and self._records_left > 0:
            batch = data[at : at + _length_at(data, at)]
            out += self._batch(batch, level)
            at += len(batch)
        return bytes(out) + bytes(len(data) - at)

    def _batch(self, batch: bytes, level: _Level) -> bytes:
        if not _may_be_batch(batch):
            return bytes(len(batch))
        magic = batch[layout.MAGIC_AT] if len(batch) > layout.MAGIC_AT else 2
        header = layout.BATCH if magic == 2 else message_set.header_of(magic)
        if len(batch) < header.size:
            return batch[: layout.LENGTH_END] + bytes(len(batch) - layout.LENGTH_END)
        is_whole = len(batch) == layout.LENGTH_END + int.from_bytes(batch[8:12], "big", signed=True)
        if magic < 2:
            return self._message(batch, level, is_whole=is_whole)
        out = bytearray(batch)
        if not self._values.keeps(ValueKind.PRODUCER_ID):
            end = PRODUCER_ID_AT + _PRODUCER_ID_BYTES
            number = int.from_bytes(batch[PRODUCER_ID_AT:end], "big", signed=True)
            new = self._values.pseudonyms.producer_id(number)
            out[PRODUCER_ID_AT:end] = new.to_bytes(_PRODUCER_ID_BYTES, "big", signed=True)
        fields = dict(zip(layout.BATCH.names, layout.BATCH.unpack_from(batch), strict=True))
        payload = batch[layout.BATCH.size :]
        if is_whole:
            kind = _Batch(level.topic, bool(fields["attributes"] & layout.CONTROL))
            codec, count = fields["attributes"] & CODEC_MASK, fields["records_count"]
            out[layout.BATCH.size :] = self._payload(payload, codec, count, kind)
            has_crc = with_crc(batch) == batch
            return _set_crc(out, with_crc(bytes(out)), _CRC_AT, is_right=has_crc)
        out[layout.BATCH.size :] = bytes(len(payload))
        return bytes(out)

    def _payload(self, payload: bytes, codec: int, count: int, batch: _Batch) -> bytes:
        if not codec:
            return self._records(payload, count, batch, MARKS[0])
        if not payload:
            return payload
        found = decompress(codec, payload, Budget(DEFAULT, len(payload)))
        if found.problem is None:
            left = self._records_left
            for mark_bytes in MARKS:
                self._records_left = left
                raw = self._records(found.data, count, batch, mark_bytes)
                new = self.same_length.find(codec, raw, payload)
                if new is not None:
                    return new
            self.lost_batches += 1
        return bytes(len(payload))

    def _records(self, data: bytes, count: int, batch: _Batch, mark_bytes: int) -> bytes:
        """Return records with other contents; after the last readable one, zeros."""
        out = bytearray(data)
        rows, headers, end = read_rows(data, min(count, self._records_left))
        self._records_left -= len(rows)
        headers_left = iter(headers)
        for _, _, _, key, key_length, value, value_length, header_count in rows:
            own = _headers_of(data, islice(headers_left, header_count))
            places = _Place(key, key_length), _Place(value, value_length)
            self._record(out, data, _Parts(places, own, batch), mark_bytes)
        for key, key_length, value, value_length in headers:
            name = _text(data, key, key_length)
            if self.structured is not None and name in NAMING_HEADERS:
                continue
            text = self._values.text(ValueKind.METADATA, name, {})
            out[key : key + key_length] = text.encode("utf-8", "surrogateescape")
            if value_length >= 0:
                self._replace(out, data, _Place(value, value_length), mark_bytes)
        out[end:] = bytes(len(out) - end)
        return bytes(out)

    def _record(self, out: bytearray, data: bytes, record: _Parts, mark_bytes: int) -> None:
        """Replace the key and the value of a record."""
        places, headers, batch = record
        decoded = _decode(batch, *(place.of(data) for place in places))
        for place, part in zip(places, ("key", "value"), strict=True):
            content = place.of(data)
            if content is None:
                continue
            embedded: Embedded | None = getattr(decoded, part) if decoded is not None else None
            if embedded is not None and len(embedded.data) == len(content):
                new: bytes | None = self._redact_embedded(embedded)
            elif self.structured is not None:
                is_key = part == "key"
                new = self.structured.replaced(
                    batch.topic, content, headers, is_key=is_key, mark_bytes=mark_bytes
                )
            else:
                new = None
            if new is None:
                self._replace(out, data, place, mark_bytes)
            else:
                out[place.start : place.start + place.length] = new

    def _replace(self, out: bytearray, data: bytes, place: _Place, mark_bytes: int) -> None:
        content = place.of(data) or b""
        new = self._values.pseudonyms.content(content, mark_bytes)
        out[place.start : place.start + place.length] = new

    def _message(self, batch: bytes, level: _Level, *, is_whole: bool) -> bytes:
        """Return a message of magic 0 or 1, or a wrapper of compressed ones."""
        self._records_left -= 1
        magic = batch[layout.MAGIC_AT]
        head = message_set.header_of(magic).size
        key, key_length, value, length = key_and_value(memoryview(batch), 0, len(batch))
        if not is_whole or length < NULL:
            return batch[:head] + bytes(len(batch) - head)
        out = bytearray(batch)
        codec = batch[layout.MAGIC_AT + 1] & CODEC_MASK
        if not codec or length == NULL:
            places = _Place(key, key_length), _Place(value, length)
            record = _Parts(places, {}, _Batch(level.topic, False))
            self._record(out, batch, record, level.mark_bytes)
        else:
            out[value : value + length] = self._wrapped(batch[value:], codec, magic, level)
            out[key : key + max(key_length, 0)] = bytes(max(key_length, 0))
        has_crc = message_set.with_crc(batch) == batch
        return _set_crc(out, message_set.with_crc(bytes(out)), _MESSAGE_CRC_AT, is_right=has_crc)

    def _wrapped(self, value: bytes, codec: int, magic: int, level: _Level) -> bytes:
        found = decompress(codec, value, Budget(DEFAULT, len(value)), magic=magic)
        if found.problem is None and level.depth < _MAX_NESTING:
            for mark_bytes in MARKS:
                inside = _Level(level.topic, level.depth + 1, mark_bytes)
                raw = self._batches(found.data, inside)
                new = self.same_length.find(codec, raw, value, magic)
                if new is not None:
                    return new
            self.lost_batches += 1
        return bytes(len(value))


def _headers_of(data: bytes, rows: Iterator[Sequence[int]]) -> Mapping[str, bytes]:
    return {
        _text(data, key, key_length): data[value : value + max(value_length, 0)]
        for key, key_length, value, value_length in rows
    }


def _text(data: bytes, at: int, length: int) -> str:
    return data[at : at + length].decode("utf-8", "surrogateescape")


def _decode(batch: _Batch, key: bytes | None, value: bytes | None) -> DecodedRecord | None:
    if batch.is_control:
        return decode_control(key, value)
    return None if batch.topic is None else decode_record(batch.topic, key, value)


def _may_be_batch(batch: bytes) -> bool:
    """Return whether bytes begin like a batch, and not like something that is to be replaced."""
    if len(batch) < layout.LENGTH_END:
        return False
    offset = int.from_bytes(batch[:8], "big", signed=True)
    length = int.from_bytes(batch[8 : layout.LENGTH_END], "big", signed=True)
    is_plausible = -1 <= offset < MAX_OFFSET and layout.MIN_MESSAGE_SIZE <= length < MAX_LENGTH
    return is_plausible and (len(batch) <= layout.MAGIC_AT or batch[layout.MAGIC_AT] <= 2)


def _length_at(data: bytes, at: int) -> int:
    """Return the length of the batch at a place, at most up to the end."""
    left = len(data) - at
    length = int.from_bytes(data[at + 8 : at + layout.LENGTH_END], "big", signed=True)
    if left < layout.LENGTH_END or length < layout.MIN_MESSAGE_SIZE:
        return left
    return min(left, length + layout.LENGTH_END)


def _set_crc(out: bytearray, with_right_crc: bytes, at: int, *, is_right: bool) -> bytes:
    """Return a batch with its right CRC, or with a wrong one where it was wrong before."""
    if is_right:
        return with_right_crc
    wrong = int.from_bytes(with_right_crc[at : at + 4], "big") ^ 1
    return bytes(out[:at]) + wrong.to_bytes(4, "big") + bytes(out[at + 4 :])
