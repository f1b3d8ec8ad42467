"""
Record batches and messages of many `records` fields at once, in columns.

One loop finds the batches of magic 2 in all fields, and the messages of message sets (magic 0 and
1) where they are wanted: each is a batch of one record, or, as a wrapper, of some. Where a field
may have more records than one may have, it is left to the Python reader, `parse_records`, which
both readers agree with: a field is right here exactly if no batch of it has a problem there.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dissector.engine.records.batch_table import (
    ATTRIBUTES,
    BASE_OFFSET,
    BASE_SEQUENCE,
    BASE_TIMESTAMP,
    COLUMN_COUNT,
    COUNT,
    CRC,
    END,
    FIELD,
    HEADER_BYTES,
    INVALID,
    MAGIC,
    MAX_TIMESTAMP,
    MIN_RECORD_BYTES,
    PAYLOAD_START,
    PRODUCER_EPOCH,
    PRODUCER_ID,
    START,
    UNDECIDED,
    VALID,
    Batches,
    Bools,
    Bytes,
    Ints,
)
from dissector.engine.records.checksum import (
    SMALL_BYTES,
    crc32_table,
    crc32c_function,
    crc32c_of,
    crc32c_table,
    crc_by_table,
)
from dissector.engine.tape.number_kernels import signed
from dissector.kernel import Kernel, device_function
from dissector.protocol.records.compression import CODEC_MASK, CODECS
from dissector.protocol.records.layout import (
    BATCH_CRC_FROM,
    LENGTH_END,
    MAGIC_AT,
    MESSAGE_0,
    MESSAGE_1,
    MESSAGE_CRC_FROM,
    MIN_BATCH_LENGTH,
    MIN_MESSAGE_SIZE,
    TIMESTAMP_TYPE,
)
from dissector.protocol.records.limits import DEFAULT

MAX_RECORDS = DEFAULT.max_records
MAX_WRAPPED_MESSAGES = 3_000_000
"""More than the wrappers of a field can hold in `payloads.UNIT_BYTES`."""

LIBRARY_MIN_BYTES = 2048
"""From here on a call of a library costs less than what it is faster than our loop."""

_SIZE_0, _SIZE_1 = MESSAGE_0.size, MESSAGE_1.size
_LAST_CODEC = max(CODECS)


def max_records(field_bytes: Ints) -> Ints:
    """Return how many records fields of these sizes may have, as `Limits.records_of` does."""
    few = DEFAULT.free_records + DEFAULT.records_a_byte * field_bytes
    many = DEFAULT.many_records + field_bytes // DEFAULT.bytes_a_record
    most: Ints = np.minimum(np.minimum(few, many), DEFAULT.max_records)
    return most


def max_bytes(field_bytes: Ints) -> Ints:
    """Return how many bytes fields of these sizes may give, as `Limits.bytes_of` does."""
    small = np.minimum(DEFAULT.field_ratio * field_bytes, DEFAULT.field_ratio_bytes)
    large = np.maximum(small, DEFAULT.large_field_ratio * field_bytes)
    most: Ints = np.clip(large, DEFAULT.field_bytes, DEFAULT.max_decompressed_bytes)
    return most


def find_batches(
    data: Bytes,
    carry_over: Bytes,
    start: Ints,
    length: Ints,
    may_be_cut: Bools,
    *,
    message_sets: bool = False,
) -> Batches:
    """
    Find the batches of `records` fields; check the CRCs of messages and of small payloads.

    The others are checked just before they are read: then they are near the processor.

    Args:
        data: The bytes of a window.
        carry_over: More bytes; their addresses go on where those of `data` end.
        start: Address of each field's content.
        length: Its bytes; a null field has none.
        may_be_cut: Whether the last batch may be cut off.
        message_sets: Whether message sets are wanted too; fields that have any are left otherwise.
    """
    state = np.zeros(len(start), np.uint8)
    parts: list[NDArray[np.int64]] = []
    done = np.zeros(2, np.int64)
    total = int(length.sum())
    room = len(start) + total // 256 + 16
    work = len(start) * 4 + total // 64
    cut = np.ascontiguousarray(may_be_cut).view(np.uint8)
    fields, least = (data, carry_over, start, length, cut, state), 0 if message_sets else 2
    most = np.minimum(max_records(length), MAX_RECORDS)
    while int(done[0]) < len(start):
        out = np.empty((COLUMN_COUNT, room), np.int64)
        _scan_fields(*fields, out, room, most, MAX_RECORDS, least, done, work=work)
        parts.append(out[:, : int(done[1])])
        # A field that finds too little room begins anew in the next piece, with more.
        room = room if done[1] else room * 4
    rows = sum(each.shape[1] for each in parts)
    # A table that is mostly filled is not copied; else its room is better given back.
    is_filled = len(parts) == 1 and rows * 8 > room
    table = out if is_filled else np.concatenate([*parts, _NO_BATCHES], axis=1)
    found = Batches(table, rows, length, state)
    small = (found.end - found.payload_start < SMALL_BYTES) | (found.magic < 2)
    verify_crcs(data, carry_over, found, np.flatnonzero(small))
    return found


def verify_crcs(data: Bytes, carry_over: Bytes, batches: Batches, chosen: Ints) -> None:
    """Check the CRCs of some batches; the fields in which one is wrong lose their state."""
    size = batches.end[chosen] - batches.start[chosen]
    tables, work = (batches.state, crc32c_table(), crc32_table()), int(size.sum()) // 8
    if _verify_kernel.ready(data, carry_over, batches.table, chosen, *tables, work=work):
        is_small = size < LIBRARY_MIN_BYTES
        _verify_kernel(data, carry_over, batches.table, chosen[is_small], *tables, work=work)
        chosen = chosen[~is_small]
    here, there, beyond = data.data, carry_over.data, len(data)
    crc32c = crc32c_function(work * 8)
    columns = batches.field, batches.start, batches.end, batches.column(CRC), batches.magic
    for field, at, end, crc, magic in zip(
        *(each[chosen].tolist() for each in columns), strict=True
    ):
        begin = at + (MESSAGE_CRC_FROM if magic < 2 else BATCH_CRC_FROM)
        piece = here[begin:end] if at < beyond else there[begin - beyond : end - beyond]
        if crc != (zlib.crc32(piece) if magic < 2 else crc32c(piece)):
            batches.state[field] = INVALID


@Kernel
def _verify_kernel(
    data: Any, held: Any, table: Any, batches: Any, state: Any, crc32cs: Any, crc32s: Any
) -> None:
    """Do the same, without libraries."""
    beyond = len(data)
    for i in range(len(batches)):
        batch = batches[i]
        at, end = table[START, batch], table[END, batch]
        source = data
        if at >= beyond:
            source = held
            at, end = at - beyond, end - beyond
        if table[MAGIC, batch] < 2:
            crc = crc_by_table(source, at + MESSAGE_CRC_FROM, end, crc32s)
        else:
            crc = crc32c_of(source, at + BATCH_CRC_FROM, end, crc32cs)
        if crc != table[CRC, batch]:
            state[table[FIELD, batch]] = INVALID


_NO_BATCHES = np.empty((COLUMN_COUNT, 0), np.int64)


@device_function
def _read_length(source: Any, at: int, end: int) -> int:
    """Read the length of a key or value: -1 is null, -2 if it does not fit."""
    if end - at < 4:
        return -2
    size = signed(source, at, 4)
    return size if -1 <= size <= end - at - 4 else -2


@device_function
def key_and_value(source: Any, at: int, end: int) -> tuple[int, int, int, int]:
    """Return where key and value of a message are, and how long; -2 if they do not fill it."""
    key = at + (_SIZE_1 if source[at + MAGIC_AT] else _SIZE_0) + 4
    key_length = _read_length(source, key - 4, end)
    if key_length < -1:
        return key, -2, key, -2
    value = key + max(key_length, 0) + 4
    length = _read_length(source, value - 4, end)
    if value + max(length, 0) != end:
        length = -2
    return key, key_length, value, length


@device_function
def _add_message(
    source: Any, at: int, stop: int, base: int, field: int, out: Any, row: int
) -> tuple[int, int]:
    """Write the row of a message; return 1 if it is right, and 1 if it is a wrapper."""
    magic = 0 | source[at + MAGIC_AT]
    attributes = 0 | source[at + MAGIC_AT + 1]
    codec = attributes & CODEC_MASK
    _, _, value, length = key_and_value(source, at, stop)
    packed = 1 if codec and length >= 0 else 0
    if length < -1 or (packed and (length == 0 or codec > _LAST_CODEC)):
        return 0, packed
    crc = signed(source, at + LENGTH_END, 4)
    out[FIELD, row] = field
    out[START, row] = base + at
    out[END, row] = base + stop
    out[BASE_OFFSET, row] = signed(source, at, 8) if packed else 0
    out[CRC, row] = crc & 0xFFFFFFFF
    out[ATTRIBUTES, row] = attributes & (CODEC_MASK | TIMESTAMP_TYPE)
    out[BASE_TIMESTAMP, row] = signed(source, at + _SIZE_0, 8) if magic else 0
    out[MAX_TIMESTAMP, row] = 0
    out[PRODUCER_ID, row] = -1
    out[PRODUCER_EPOCH, row] = -1
    out[BASE_SEQUENCE, row] = -1
    out[COUNT, row] = 1 - packed
    out[MAGIC, row] = magic
    out[PAYLOAD_START, row] = base + (value if packed else at)
    return 1, packed


@device_function
def _scan_field(
    source: Any,
    at: int,
    end: int,
    base: int,
    field: int,
    may_be_cut: int,
    out: Any,
    room: int,
    most: int,
    most_wrapped: int,
    least: int,
    row: int,
) -> tuple[int, int]:
    """
    Find the batches of one field; `base` is the address of the first byte of `source`.

    Returns:
        The next row, -1 where there is no more room, and what is known of the field.
    """
    records = 0
    wrapped = 0
    while at < end:
        length = signed(source, at + 8, 4) if end - at >= LENGTH_END else end - at
        if length + LENGTH_END > end - at:
            return row, VALID if may_be_cut else INVALID
        if length < MIN_MESSAGE_SIZE:
            return row, INVALID
        magic = 0 | source[at + MAGIC_AT]
        if magic < least:
            return row, UNDECIDED
        stop = at + LENGTH_END + length
        if magic < 2 and row < room and length >= MIN_MESSAGE_SIZE + 8 * magic:
            right, is_wrapper = _add_message(source, at, stop, base, field, out, row)
            if not right:
                return row, INVALID
            wrapped |= is_wrapper
            records += 1
            if records > most or records + wrapped * MAX_WRAPPED_MESSAGES > most_wrapped:
                return row, UNDECIDED
            row += 1
            at = stop
            continue
        if row >= room:
            return -1, VALID
        if magic != 2 or length < MIN_BATCH_LENGTH:
            return row, INVALID
        attributes = signed(source, at + 21, 2)
        count = signed(source, at + 57, 4)
        if count < 0 or (
            attributes & 7 == 0 and count * MIN_RECORD_BYTES > stop - at - HEADER_BYTES
        ):
            return row, INVALID
        records += count + 1
        if records > most or records + wrapped * MAX_WRAPPED_MESSAGES > most_wrapped:
            return row, UNDECIDED
        out[FIELD, row] = field
        out[START, row] = base + at
        out[END, row] = base + stop
        out[BASE_OFFSET, row] = signed(source, at, 8)
        crc = signed(source, at + 17, 4)
        out[CRC, row] = crc & 0xFFFFFFFF
        out[ATTRIBUTES, row] = attributes
        out[BASE_TIMESTAMP, row] = signed(source, at + 27, 8)
        out[MAX_TIMESTAMP, row] = signed(source, at + 35, 8)
        out[PRODUCER_ID, row] = signed(source, at + 43, 8)
        out[PRODUCER_EPOCH, row] = signed(source, at + 51, 2)
        out[BASE_SEQUENCE, row] = signed(source, at + 53, 4)
        out[COUNT, row] = count
        out[MAGIC, row] = 2
        out[PAYLOAD_START, row] = base + at + HEADER_BYTES
        row += 1
        at = stop
    return row, VALID


@Kernel
def _scan_fields(
    data: Any,
    held: Any,
    start: Any,
    length: Any,
    may_be_cut: Any,
    state: Any,
    out: Any,
    room: int,
    most: Any,
    most_wrapped: int,
    least: int,
    done: Any,
) -> None:
    """Read fields from `done[0]` on until `out` is full; `done[1]` is how many rows it has."""
    beyond = len(data)
    row = 0
    field = done[0]
    while field < len(start):
        at, size, cut = start[field], length[field], may_be_cut[field]
        if size > 0:
            source, base = data, 0
            if at >= beyond:
                source, base = held, beyond
            at -= base
            found = _scan_field(
                source,
                at,
                at + size,
                base,
                field,
                cut,
                out,
                room,
                most[field],
                most_wrapped,
                least,
                row,
            )
            if found[0] < 0:
                break
            row = found[0]
            state[field] = found[1]
        field += 1
    done[0] = field
    done[1] = row
