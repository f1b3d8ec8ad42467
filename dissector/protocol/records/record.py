"""
Records of magic 2: made of the rows of the kernel, written, and diagnosed.

The kernel stops at the first invalid record; the declaration, `record_constructs.RECORD`, then
reads that record to find the field and the byte.

Source: KIP-98 (record), KIP-82 (headers).
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

from dissector.errors import DecodeError, EncodeError
from dissector.protocol.records.layout import int64, zigzag
from dissector.protocol.records.payload_kernel import read_rows

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
    rows, of_headers, stopped = read_rows(data, count)
    new, every_header = tuple.__new__, iter(of_headers)
    wide = abs(base_offset) >= _SAFE or abs(base_timestamp) >= _SAFE
    records: list[Record] = []
    for attributes, time, offset, key, key_length, value, value_length, headers in rows:
        timestamp = base_timestamp + time if append_time is None else append_time
        fields = (
            attributes if attributes < 0x80 else attributes - 0x100,
            time,
            offset,
            data[key : key + key_length] if key_length >= 0 else None,
            data[value : value + value_length] if value_length >= 0 else None,
            _headers(data, islice(every_header, headers)) if headers else (),
            base_offset + offset,
            timestamp,
            None,
        )
        records.append(new(Record, fields))
        wide |= not -_SAFE < time < _SAFE
    return [_wrapped_to_64_bits(record) for record in records] if wide else records, stopped


def _headers(data: bytes, rows: Iterable[tuple[int, ...]]) -> Headers:
    return tuple(
        (
            data[key : key + key_length].decode("utf-8", "surrogateescape"),
            data[value : value + value_length] if value_length >= 0 else None,
        )
        for key, key_length, value, value_length in rows
    )


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
