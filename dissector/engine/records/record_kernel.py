"""
The kernel that reads the records of batches into columns.

It checks each length and count against the remaining bytes, as `read_records` of `protocol.records`
does, and agrees with it on every batch. Without compilation it is slow.

Source: KIP-98 (record), KIP-82 (headers).
"""

from __future__ import annotations

from dissector.engine.records.batch_table import (
    INVALID,
    MIN_RECORD_BYTES,
    VALID,
    BatchColumns,
)
from dissector.engine.records.record_arrays import (
    HeaderColumns,
    PayloadArrays,
    ReadProgress,
    RecordColumns,
)
from dissector.engine.tables.exchange_table import NONE
from dissector.engine.tape.number_kernels import wrapped_sum
from dissector.kernel import Kernel, device_function
from dissector.kernel.arrays import U8, Buffers
from dissector.protocol.records import layout

NULL = -1
"""Length of null."""
NO_ROOM = -2
"""Result if the table of headers is full."""

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
        key, key_length = _read_length(source, at, end)
        if key < 0 or key_length < 0:
            return -1
        value, value_length = _read_length(source, key + key_length, end)
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
def _read_batch(
    source: U8,
    base: int,
    number: int,
    payloads: PayloadArrays,
    batches: BatchColumns,
    records: RecordColumns,
    headers: HeaderColumns,
    progress: ReadProgress,
) -> int:
    """
    Read the records of one batch.

    Args:
        source: The bytes.
        base: Address of the first byte of `source`.
        number: Number of the batch among those to read.
        payloads: These.
        batches: All batches of the window.
        records: The columns of records,
        headers: and of headers.
        progress: The headers read so far.

    Returns:
        0, -1 if the batch is invalid, or NO_ROOM.
    """
    batch, row = payloads.batch[number], payloads.first[number]
    attributes = batches.attributes[batch]
    min_key_length = CONTROL_KEY_BYTES if attributes & layout.CONTROL else NULL
    has_append_time = attributes & layout.TIMESTAMP_TYPE
    base_offset = batches.base_offset[batch]
    time = batches.max_timestamp[batch] if has_append_time else batches.base_timestamp[batch]
    total = payloads.end[number] - base
    # A record begins after the length of its predecessor, not at the end of reading it; so the CPU
    # can begin before the earlier record is read.
    end = payloads.start[number] - base
    for i in range(row, row + batches.record_count[batch]):
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
            at = _read_headers(source, at, end, base, count, headers, progress)
            if at < 0:
                return at
        if at != end:
            return -1
        if progress.header_capacity >= 0:
            records.offset[i] = wrapped_sum(base_offset, offset_delta)
            records.timestamp[i] = time if has_append_time else wrapped_sum(time, time_delta)
            records.key[i] = base + key if key_length >= 0 else NONE
            records.key_length[i] = key_length
            records.value[i] = base + value if value_length >= 0 else NONE
            records.value_length[i] = value_length
            records.header_count[i] = count
    return 0 if end == total else -1


@Kernel
def read_batches(
    buffers: Buffers,
    payloads: PayloadArrays,
    batches: BatchColumns,
    records: RecordColumns,
    headers: HeaderColumns,
    until: int,
    progress: ReadProgress,
) -> None:
    """
    Read batches, from the next to `until`, or until the columns of headers are full.

    Message sets are skipped.
    """
    state = payloads.state
    carry_over_at = len(buffers.data)
    arena_at = carry_over_at + len(buffers.carry_over)
    i = progress.batch
    while i < until:
        batch, begin = payloads.batch[i], payloads.start[i]
        field = batches.field[batch]
        if state[field] == VALID and batches.magic[batch] == 2:
            source = buffers.data
            base = 0
            if begin >= arena_at:
                source = buffers.arena
                base = arena_at
            elif begin >= carry_over_at:
                source = buffers.carry_over
                base = carry_over_at
            header = progress.header
            result = _read_batch(source, base, i, payloads, batches, records, headers, progress)
            if result < 0:
                progress.header = header
            if result == NO_ROOM:
                break
            if result < 0:
                state[field] = INVALID
        if state[field] != VALID:
            for empty in range(payloads.first[i], payloads.first[i + 1]):
                records.header_count[empty] = 0
        i += 1
    progress.batch = i
