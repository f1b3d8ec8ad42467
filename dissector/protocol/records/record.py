"""
Records of magic 2: read in one tight loop, written, and diagnosed.

The loop reads what `declared.RECORD` declares, in a fraction of its time: a field may hold tens of
thousands of records. It stops at the first invalid record; the declaration then reads that record
to find the field and the byte.

Source: KIP-98 (record), KIP-82 (headers).
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import NamedTuple

from dissector.errors import DecodeError, EncodeError
from dissector.protocol.records.layout import int64, zigzag

Headers = tuple[tuple[str, bytes | None], ...]

_SAFE = 1 << 62
"""Sums of base values and deltas below this stay within 64 bits."""


class Record(NamedTuple):
    """
    A record of a batch of magic 2.

    Attributes:
        attributes: Unused by Kafka so far.
        timestamp_delta: Milliseconds after the batch's base timestamp, as written.
        offset_delta: After the batch's base offset, as written.
        key: None without one.
        value: None is a tombstone.
        headers: (key, value) in order; keys that are not UTF-8 are decoded with surrogates.
        offset: In the log: base offset + delta. Only batches from a broker have a true base offset.
        timestamp: Milliseconds since the epoch: the batch's append time, if it has one.
        control_type: Name of the type in a control batch (`COMMIT`), else None.
    """

    attributes: int = 0
    timestamp_delta: int = 0
    offset_delta: int = 0
    key: bytes | None = None
    value: bytes | None = None
    headers: Headers = ()
    offset: int = 0
    timestamp: int = 0
    control_type: str | None = None


def read_records(
    data: bytes, count: int, base_offset: int, base_timestamp: int, append_time: int | None
) -> tuple[list[Record], int]:
    """
    Read at most `count` records from the (decompressed) payload of a batch.

    Args:
        data: Records one after the other.
        count: As in the batch's header; no memory is allocated from it.
        base_offset: Added to each offset delta.
        base_timestamp: Added to each timestamp delta, in ms.
        append_time: Timestamp of all records if set by the broker, else None.

    Returns:
        The records, and where reading stopped: behind the last record, or at the invalid one.
    """
    records: list[Record] = []
    add, new = records.append, tuple.__new__
    total = len(data)
    may_overflow = abs(base_offset) >= _SAFE or abs(base_timestamp) >= _SAFE
    pos = at = 0
    headers: Headers | None
    try:
        for _ in range(count):
            at = pos
            size = data[pos]
            pos += 1
            if size > 0x7F:
                size, pos = _read_long_varint(data, pos, size, 32)
            end = pos + (size >> 1)
            if size & 1 or end > total:
                break
            attributes = data[pos]
            delta = data[pos + 1]
            pos += 2
            if delta > 0x7F:
                delta, pos = _read_long_varint(data, pos, delta, 64)
                may_overflow |= delta >= _SAFE
            timestamp_delta = delta >> 1 ^ -(delta & 1)
            delta = data[pos]
            pos += 1
            if delta > 0x7F:
                delta, pos = _read_long_varint(data, pos, delta, 32)
            offset_delta = delta >> 1 ^ -(delta & 1)

            size = data[pos]
            pos += 1
            if size > 0x7F:
                size, pos = _read_long_varint(data, pos, size, 32)
            key = value = None
            if size != 1:
                stop = pos + (size >> 1)
                if size & 1 or stop > end:
                    break
                key = data[pos:stop]
                pos = stop
            size = data[pos]
            pos += 1
            if size > 0x7F:
                size, pos = _read_long_varint(data, pos, size, 32)
            if size != 1:
                stop = pos + (size >> 1)
                if size & 1 or stop > end:
                    break
                value = data[pos:stop]
                pos = stop

            headers = ()
            size = data[pos]
            pos += 1
            if size:
                headers, pos = _read_headers(data, pos, size, end)
            if pos != end or headers is None:
                break
            timestamp = base_timestamp + timestamp_delta if append_time is None else append_time
            add(
                new(
                    Record,
                    (
                        attributes if attributes < 0x80 else attributes - 0x100,
                        timestamp_delta,
                        offset_delta,
                        key,
                        value,
                        headers,
                        base_offset + offset_delta,
                        timestamp,
                        None,
                    ),
                )
            )
        else:
            at = pos
    except (IndexError, DecodeError):
        pass  # at the record that began at `at`
    return [_wrapped_to_64_bits(record) for record in records] if may_overflow else records, at


def _read_long_varint(data: bytes, pos: int, value: int, bits: int) -> tuple[int, int]:
    """Read the rest of a varint of several bytes; the result is still zigzag."""
    value &= 0x7F
    for shift in range(7, bits, 7):
        byte = data[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >> bits:
                break
            return value, pos
    raise DecodeError(f"varint does not end within {bits} bits", position=pos)


def _read_headers(data: bytes, pos: int, count: int, end: int) -> tuple[Headers | None, int]:
    """Read the headers of a record that ends at `end`; None where they are invalid."""
    if count > 0x7F:
        count, pos = _read_long_varint(data, pos, count, 32)
    if count & 1 or count > end - pos:  # a header has two bytes, and the count is still doubled
        return None, pos
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count >> 1):
        size = data[pos]
        pos += 1
        if size > 0x7F:
            size, pos = _read_long_varint(data, pos, size, 32)
        stop = pos + (size >> 1)
        if size & 1 or stop > end:
            return None, pos
        key = data[pos:stop].decode("utf-8", "surrogateescape")
        size = data[stop]
        pos = stop + 1
        if size > 0x7F:
            size, pos = _read_long_varint(data, pos, size, 32)
        if size == 1:
            headers.append((key, None))
            continue
        stop = pos + (size >> 1)
        if size & 1 or stop > end:
            return None, pos
        headers.append((key, data[pos:stop]))
        pos = stop
    return tuple(headers), pos


def _wrapped_to_64_bits(record: Record) -> Record:
    """Wrap offset and timestamp to 64 bits."""
    return record._replace(offset=int64(record.offset), timestamp=int64(record.timestamp))


def locate_error(data: bytes, at: int) -> DecodeError:
    """Return the error of the record at `at`, where `read_records` stopped."""
    from dissector.protocol.records.record_constructs import RECORD, varint

    stream = io.BytesIO(data)
    stream.seek(at)
    try:
        size = varint._parse(stream, None, "")
    except DecodeError as error:
        return error.within("length")
    start = stream.tell()
    if not 0 <= size <= len(data) - start:
        message = f"length {size} but {len(data) - start} bytes are left in the batch"
        return DecodeError(message, "length", at)
    body = io.BytesIO(data[start : start + size])
    try:
        RECORD._parse(body, None, "")
    except DecodeError as error:
        error.position += start
        return error
    message = f"record ends at byte {start + body.tell()}, its length says {start + size}"
    return DecodeError(message, "length", at)


def write_records(records: Iterable[Record]) -> bytes:
    """
    Write records one after the other, by their deltas.

    Raises:
        EncodeError: A value can't be written; the path names record and field.
    """
    out: list[bytes] = []
    for index, record in enumerate(records):
        try:
            body = b"".join(_encoded_fields(record))
        except (TypeError, ValueError, AttributeError, OverflowError):
            body = _write_by_declaration(record, index)
        out += (zigzag(len(body)), body)
    return b"".join(out)


def _encoded_fields(record: Record) -> list[bytes]:
    """Return the encoded fields of a record, without its length."""
    if not -1 << 31 <= record.offset_delta < 1 << 31:
        raise ValueError("offset_delta")
    if not -1 << 63 <= record.timestamp_delta < 1 << 63:
        raise ValueError("timestamp_delta")
    fields = [
        record.attributes.to_bytes(1, "big", signed=True),
        zigzag(record.timestamp_delta),
        zigzag(record.offset_delta),
    ]
    for value in (record.key, record.value):
        fields += (_NULL,) if value is None else (zigzag(len(value)), value)
    fields.append(zigzag(len(record.headers)))
    for key, value in record.headers:
        name = key.encode("utf-8", "surrogateescape")
        fields += (zigzag(len(name)), name)
        fields += (_NULL,) if value is None else (zigzag(len(value)), value)
    return fields


_NULL = zigzag(-1)


def _write_by_declaration(record: Record, index: int) -> bytes:
    """Write a record by the declaration, to identify the invalid field."""
    from dissector.protocol.records.record_constructs import RECORD

    try:
        headers = [{"key": key, "value": value} for key, value in record.headers]
        return bytes(RECORD.build(record._asdict() | {"headers": headers}))
    except (TypeError, ValueError):
        message, path = "headers are not pairs of key and value", f"records[{index}].headers"
        raise EncodeError(message, path) from None
    except EncodeError as error:
        raise error.within(f"[{index}]").within("records") from None
