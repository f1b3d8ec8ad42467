"""
The kernel that reads records of magic 2: each length and count is checked against what is left.

`read_records` makes objects of its rows, `engine.records` reads many batches into columns by it,
and redaction takes the places of contents.

Source: KIP-98 (record), KIP-82 (headers).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dissector.kernel import Kernel, device_function
from dissector.kernel.arrays import I64, NONE, U8
from dissector.kernel.named_rows import NamedRow, Rows, dtype_of

NULL = -1
"""Length of null."""
NO_ROOM = -2
"""Result if the columns of headers are full."""

MIN_RECORD_BYTES = 7
"""Bytes of a record without key, value and headers."""

_INT64_MAX = 0x7FFFFFFFFFFFFFFF
_ROWS_AT_ONCE = 4096


class HeaderColumns(NamedTuple):
    """
    The headers of records in columns, in order.

    Attributes:
        key: Address of the key.
        key_length: Its bytes.
        value: Address of the value; NONE if it is null.
        value_length: Its bytes.
    """

    key: I64
    key_length: I64
    value: I64
    value_length: I64


class ReadProgress(NamedRow):
    """
    How far the reader of records came.

    Attributes:
        batch: The next batch; of one payload the next row.
        at: Of one payload, where the next record begins.
        header: Number of headers read.
        header_capacity: Space for headers; negative: records are only validated.
    """

    batch: int
    at: int
    header: int
    header_capacity: int


class RecordRow(NamedRow):
    """
    A record of one payload.

    Attributes:
        attributes: From 0 to 255.
        timestamp_delta: As written.
        offset_delta: As written.
        key: Where the key begins.
        key_length: Its bytes; NULL for null.
        value: Where the value begins.
        value_length: Its bytes; NULL for null.
        header_count: Number of headers.
    """

    attributes: int
    timestamp_delta: int
    offset_delta: int
    key: int
    key_length: int
    value: int
    value_length: int
    header_count: int


@device_function
def _read_long_varint(source: U8, at: int, end: int, value: int, last: int) -> tuple[int, int]:
    """
    Read the rest of a varint after a first byte with the continuation bit; without zigzag decoding.

    Args:
        source: The bytes.
        at: Offset behind the first byte.
        end: End of the record.
        value: The first byte.
        last: Largest last byte: 15 for five bytes, 1 for ten.

    Returns:
        The number and its end; -1 if it is invalid.
    """
    if at < end and source[at] < 128:
        return value & 127 | (0 | source[at]) << 7, at + 1
    value &= 127
    shift = 7
    max_shift = 28 if last == 15 else 63
    while shift <= max_shift and at < end:
        byte = source[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, -1 if shift == max_shift and byte > last else at
        shift += 7
    return 0, -1


@device_function
def read_varint(source: U8, at: int, end: int, last: int) -> tuple[int, int]:
    """Read a zigzag varint; return it and its end, -1 if invalid, as for a negative `at`."""
    if at < 0 or at >= end:
        return 0, -1
    value = 0 | source[at]
    at += 1
    if value > 127:
        value, at = _read_long_varint(source, at, end, value, last)
    return ((value >> 1) & _INT64_MAX) ^ -(value & 1), at


@device_function
def read_length(source: U8, at: int, end: int) -> tuple[int, int]:
    """
    Read the length of a key or value.

    Returns:
        Begin of the content, -1 if it does not fit, and its length or NULL.
    """
    if at < 0 or at >= end:
        return -1, NULL
    size = 0 | source[at]
    at += 1
    if size > 127:
        size, at = _read_long_varint(source, at, end, size, 15)
        if at < 0:
            return -1, NULL
    if size == 1:
        return at, NULL
    if size & 1 or size >> 1 > end - at:
        return -1, NULL
    return at, size >> 1


@device_function
def read_headers(
    source: U8,
    at: int,
    end: int,
    base: int,
    count: int,
    headers: HeaderColumns,
    progress: ReadProgress,
) -> int:
    """Read the headers of a record; return where they end, -1 if they are invalid, or NO_ROOM."""
    if count > (end - at) >> 1:
        return -1
    row, capacity = progress.header, progress.header_capacity
    if capacity >= 0 and row + count > capacity:
        return NO_ROOM
    for i in range(count):
        key, key_length = read_length(source, at, end)
        if key < 0 or key_length < 0:
            return -1
        value, value_length = read_length(source, key + key_length, end)
        if value < 0:
            return -1
        at = value + max(value_length, 0)
        if capacity >= 0:
            headers.key[row + i] = base + key
            headers.key_length[row + i] = key_length
            headers.value[row + i] = base + value if value_length >= 0 else NONE
            headers.value_length[row + i] = value_length
    progress.header = row + count
    return at


@device_function
def read_record(
    source: U8, begin: int, total: int
) -> tuple[int, int, int, int, int, int, int, int, int]:
    """
    Read a record up to its headers.

    Args:
        source: The bytes.
        begin: Where it begins.
        total: Where the payload ends.

    Returns:
        Where it ends, -1 if it is invalid; deltas of time and offset; begin and length of key and
        value; begin and number of headers. Its attributes are the first byte behind its length.
    """
    at, size = read_length(source, begin, total)
    if at < 0 or size < MIN_RECORD_BYTES - 1:
        return -1, 0, 0, 0, 0, 0, 0, 0, 0
    end = at + size
    time_delta, at = read_varint(source, at + 1, end, 1)
    offset_delta, at = read_varint(source, at, end, 15)
    key, key_length = read_length(source, at, end)
    if key < 0:
        return -1, 0, 0, 0, 0, 0, 0, 0, 0
    value, value_length = read_length(source, key + max(key_length, 0), end)
    if value < 0:
        return -1, 0, 0, 0, 0, 0, 0, 0, 0
    at, count = read_length(source, value + max(value_length, 0), end)
    if at < 0 or count < 0:
        return -1, 0, 0, 0, 0, 0, 0, 0, 0
    return end, time_delta, offset_delta, key, key_length, value, value_length, at, count


@device_function
def _attributes(source: U8, begin: int) -> int:
    """Return the attributes of a valid record."""
    at = begin
    while source[at] > 127:
        at += 1
    return 0 | source[at + 1]


@Kernel
def read_payload(
    source: U8, rows: Rows[RecordRow], headers: HeaderColumns, progress: ReadProgress
) -> int:
    """
    Read records of one payload, until `rows` are full.

    Returns:
        0, -1 at an invalid record, or NO_ROOM.
    """
    total = len(source)
    i = 0
    result = 0
    while i < len(rows) and result == 0:
        begin, header = progress.at, progress.header
        end, time, offset, key, key_length, value, value_length, at, count = read_record(
            source, begin, total
        )
        if end >= 0 and count > 0:
            at = read_headers(source, at, end, 0, count, headers, progress)
        if end < 0 or at != end:
            result = at if end >= 0 and at == NO_ROOM else -1
            progress.header = header
        else:
            row = rows[i]
            row.attributes = _attributes(source, begin)
            row.timestamp_delta = time
            row.offset_delta = offset
            row.key = key
            row.key_length = key_length
            row.value = value
            row.value_length = value_length
            row.header_count = count
            progress.at = end
            i += 1
    progress.batch = i
    return result


class PayloadRows(NamedTuple):
    """
    The records of one payload.

    Attributes:
        rows: A tuple for each record, with the fields of `RecordRow`.
        headers: A tuple for each header, with the columns of `HeaderColumns`.
        stopped: Where reading stopped: behind the last record, or at the invalid one.
    """

    rows: list[tuple[int, ...]]
    headers: list[tuple[int, ...]]
    stopped: int


def read_rows(data: bytes, count: int) -> PayloadRows:
    """
    Read at most `count` records, up to the first invalid one.

    Args:
        data: Records one after the other.
        count: As in the batch's header; no memory is allocated from it.
    """
    rows: list[tuple[int, ...]] = []
    found: list[tuple[int, ...]] = []
    source, headers = np.frombuffer(data, np.uint8), _NO_HEADERS
    progress = np.zeros((), _PROGRESS)
    left, stopped = min(count, len(data) // MIN_RECORD_BYTES), 0
    while left > 0:
        table = np.empty(min(left, _ROWS_AT_ONCE), _ROW)
        result = read_payload(source, table, headers, progress)
        done, stopped, headers_read, _ = progress.item()
        rows += table[:done].tolist()
        left -= done
        if headers_read:
            columns = (np.asarray(each[:headers_read]).tolist() for each in headers)
            found += zip(*columns, strict=True)
            progress["header"] = 0
        if result == NO_ROOM:
            capacity = progress["header_capacity"] = 2 * len(headers.key) + 64
            headers = HeaderColumns._make(np.empty((4, capacity), np.int64))
        elif result:
            break
    return PayloadRows(rows, found, stopped)


_ROW, _PROGRESS = dtype_of(RecordRow), dtype_of(ReadProgress)
_NO_HEADERS = HeaderColumns._make(np.empty((4, 0), np.int64))
