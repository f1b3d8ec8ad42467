"""
The kernel that reads the records of batches into columns.

It checks each length and count against the remaining bytes, as `read_records` of `protocol.records`
does, and agrees with it on every batch. Without compilation it is slow.

Source: KIP-98 (record), KIP-82 (headers).
"""

from __future__ import annotations

from dissector.engine.records.batch_table import (
    ATTRIBUTES,
    BASE_OFFSET,
    BASE_TIMESTAMP,
    COUNT,
    FIELD,
    INVALID,
    MAGIC,
    MAX_TIMESTAMP,
    MIN_RECORD_BYTES,
    VALID,
)
from dissector.engine.records.record_arrays import PayloadArrays, RecordArrays
from dissector.engine.tables.exchange_table import NONE
from dissector.engine.tape.number_kernels import wrapped_sum
from dissector.kernel import Kernel, device_function
from dissector.kernel.arrays import I64, U8, Buffers, I64Table
from dissector.protocol.records.layout import CONTROL, TIMESTAMP_TYPE

NULL = -1
"""Length of null."""
NO_ROOM = -2
"""Result if the table of headers is full."""

OFFSET, TIMESTAMP, KEY, KEY_LENGTH, VALUE, VALUE_LENGTH, HEADERS = range(7)
COLUMN_COUNT = 7
CONTROL_KEY_BYTES = 4
_INT64_MAX = 0x7FFFFFFFFFFFFFFF


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
def _read_length(source: U8, at: int, end: int) -> tuple[int, int]:
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
def _read_headers(
    source: U8, at: int, end: int, base: int, count: int, headers: I64Table, capacity: int, row: int
) -> int:
    """Read the headers of a record; return where they end, -1 if they are invalid, or NO_ROOM."""
    if count > (end - at) >> 1:
        return -1
    if capacity >= 0 and row + count > capacity:
        return NO_ROOM
    for i in range(count):
        key, key_length = _read_length(source, at, end)
        if key < 0 or key_length < 0:
            return -1
        value, value_length = _read_length(source, key + key_length, end)
        if value < 0:
            return -1
        at = value + max(value_length, 0)
        if capacity >= 0:
            headers[0, row + i] = base + key
            headers[1, row + i] = key_length
            headers[2, row + i] = base + value if value_length >= 0 else NONE
            headers[3, row + i] = value_length
    return at


@device_function
def _read_batch(
    source: U8,
    base: int,
    number: int,
    payloads: PayloadArrays,
    found: RecordArrays,
    capacity: int,
    header: int,
) -> int:
    """
    Read the records of one batch.

    Args:
        source: The bytes.
        base: Address of the first byte of `source`.
        number: Number of the batch among those to read.
        payloads: These.
        found: The columns of records and headers.
        capacity: Number of columns for headers; negative: records are only validated.
        header: Column of its first header.

    Returns:
        The next header, -1 if the batch is invalid, or NO_ROOM.
    """
    table, out, headers = payloads.table, found.records, found.headers
    batch, row = payloads.batch[number], payloads.first[number]
    attributes = table[ATTRIBUTES, batch]
    min_key_length = CONTROL_KEY_BYTES if attributes & CONTROL else NULL
    has_append_time = attributes & TIMESTAMP_TYPE
    base_offset = table[BASE_OFFSET, batch]
    time = table[MAX_TIMESTAMP, batch] if has_append_time else table[BASE_TIMESTAMP, batch]
    total = payloads.end[number] - base
    # A record begins after the length of its predecessor, not at the end of reading it; so the CPU
    # can begin before the earlier record is read.
    end = payloads.start[number] - base
    for i in range(row, row + table[COUNT, batch]):
        at, size = _read_length(source, end, total)
        if at < 0 or size < MIN_RECORD_BYTES - 1:
            return -1
        end = at + size
        time_delta, at = read_varint(source, at + 1, end, 1)  # a record's attributes are unused
        offset_delta, at = read_varint(source, at, end, 15)
        key, key_length = _read_length(source, at, end)
        if key < 0 or key_length < min_key_length:
            return -1
        value, value_length = _read_length(source, key + max(key_length, 0), end)
        if value < 0:
            return -1
        at, count = _read_length(source, value + max(value_length, 0), end)
        if at < 0 or count < 0:
            return -1
        if count > 0:
            at = _read_headers(source, at, end, base, count, headers, capacity, header)
            if at < 0:
                return at
            header += count
        if at != end:
            return -1
        if capacity >= 0:
            out[OFFSET, i] = wrapped_sum(base_offset, offset_delta)
            out[TIMESTAMP, i] = time if has_append_time else wrapped_sum(time, time_delta)
            out[KEY, i] = base + key if key_length >= 0 else NONE
            out[KEY_LENGTH, i] = key_length
            out[VALUE, i] = base + value if value_length >= 0 else NONE
            out[VALUE_LENGTH, i] = value_length
            out[HEADERS, i] = count
    return header if end == total else -1


@Kernel
def read_batches(
    buffers: Buffers,
    payloads: PayloadArrays,
    found: RecordArrays,
    capacity: int,
    until: int,
    done: I64,
) -> None:
    """
    Read batches from `done[0]` to `until`, or until the columns of headers are full.

    `done` is set to the next batch and the number of headers. Message sets are skipped.
    """
    state, out = payloads.state, found.records
    carry_over_at = len(buffers.data)
    arena_at = carry_over_at + len(buffers.carry_over)
    at = done[1]
    i = done[0]
    while i < until:
        batch, begin = payloads.batch[i], payloads.start[i]
        field = payloads.table[FIELD, batch]
        if state[field] == VALID and payloads.table[MAGIC, batch] == 2:
            source = buffers.data
            base = 0
            if begin >= arena_at:
                source = buffers.arena
                base = arena_at
            elif begin >= carry_over_at:
                source = buffers.carry_over
                base = carry_over_at
            result = _read_batch(source, base, i, payloads, found, capacity, at)
            if result == NO_ROOM:
                break
            if result < 0:
                state[field] = INVALID
            else:
                at = result
        if state[field] != VALID:
            for empty in range(payloads.first[i], payloads.first[i + 1]):
                out[HEADERS, empty] = 0
        i += 1
    done[0] = i
    done[1] = at
