"""Device functions of `body_kernel` that write batches and messages of `records` fields as JSON."""

from __future__ import annotations

from dissector.engine.records.batch_table import HEADER_BYTES, VALID
from dissector.engine.tape.primitive_kernels import int16_at, int32_at, number_at
from dissector.kernel import device_function
from dissector.kernel.arrays import I64, U8, I64Table
from dissector.protocol.records.layout import (
    BATCH_CRC_FROM,
    DELETE_HORIZON,
    LENGTH_END,
    MAGIC_AT,
    MESSAGE_0,
    TIMESTAMP_TYPE,
)
from dissector.view.json.json_constants import (
    ATTRIBUTES_PER_MAGIC,
    BATCH_ATTRIBUTES,
    BATCH_FIELDS_END,
    HEADER_FIELD_NAMES,
    MESSAGE_ATTRIBUTES,
    MESSAGE_FIELDS_END,
    NULL,
    PARTIAL_BYTES,
    PARTIAL_END,
    PARTIAL_LENGTH,
    PARTIAL_MAGIC,
    PARTIAL_OFFSET,
)
from dissector.view.json.message_json_kernel import write_messages
from dissector.view.json.record_json_kernel import (
    NO_ROOM,
    SLOW_PATH,
    WRITTEN,
    read_nullable_length,
    write_record,
)
from dissector.view.json.scalar_json_kernel import write_integer
from dissector.view.tables.text_kernel import write_fragment, write_hex

_BATCH_OVERHEAD_BYTES = 1024
"""Output bytes of a batch, or message, without its records, at most."""

_MESSAGE_TIMESTAMP_AT = MESSAGE_0.size
_ATTRIBUTE_BITS = 2 * DELETE_HORIZON - 1
_MAX_BASE = 1 << 62
"""Base offsets and timestamps above this are left to Python, because sums might overflow."""


@device_function
def _write_records(
    source: U8,
    begin: int,
    end: int,
    count: int,
    base_offset: int,
    base_time: int,
    attributes: int,
    pool: U8,
    offsets: I64,
    unsafe: U8,
    out: U8,
    to: int,
) -> tuple[int, int]:
    """Write the records of a batch; return the result, and where the text ends."""
    if (
        base_offset > _MAX_BASE
        or base_offset < -_MAX_BASE
        or base_time > _MAX_BASE
        or base_time < -_MAX_BASE
    ):
        return SLOW_PATH, to
    for i in range(count):
        size, begin = read_nullable_length(source, begin, end)
        if begin < 0 or size < 0:
            return SLOW_PATH, to
        if i > 0:
            out[to] = 44
            out[to + 1] = 32
            to += 2
        result, to = write_record(
            source,
            begin,
            begin + size,
            base_offset,
            base_time,
            attributes,
            pool,
            offsets,
            unsafe,
            out,
            to,
        )
        if result != WRITTEN:
            return result, to
        begin += size
    return WRITTEN if begin == end else SLOW_PATH, to


@device_function
def _write_batch(
    source: U8,
    start: int,
    begin: int,
    end: int,
    base_offset: int,
    is_wrapper: int,
    data: U8,
    carry_over: U8,
    arena: U8,
    pool: U8,
    offsets: I64,
    numbers: I64Table,
    unsafe: U8,
    out: U8,
    to: int,
) -> tuple[int, int]:
    """
    Write a batch, or message, whose header begins at `start`.

    The other arguments are those of `write_records_field`.

    Returns:
        The result, and where the text ends.
    """
    if to + _BATCH_OVERHEAD_BYTES > len(out):
        return NO_ROOM, to
    payload = data
    if begin >= len(data) + len(carry_over):
        begin -= len(data) + len(carry_over)
        end -= len(data) + len(carry_over)
        payload = arena
    elif begin >= len(data):
        begin -= len(data)
        end -= len(data)
        payload = carry_over
    magic = 0 | source[start + MAGIC_AT]
    if magic < 2:
        attributes = 0 | source[start + MAGIC_AT + 1]
        first, until = BATCH_FIELDS_END, MESSAGE_FIELDS_END - 1 + magic
        meaning = (
            MESSAGE_ATTRIBUTES
            + magic * ATTRIBUTES_PER_MAGIC
            + (attributes & (ATTRIBUTES_PER_MAGIC - 1))
        )
        time_at = start + _MESSAGE_TIMESTAMP_AT
    else:
        attributes = int16_at(source, start + BATCH_CRC_FROM)
        first, until = 0, BATCH_FIELDS_END
        meaning = BATCH_ATTRIBUTES + (attributes & _ATTRIBUTE_BITS)
        time_at = start + (35 if attributes & TIMESTAMP_TYPE else 27)
    time = number_at(source, time_at, 8, 1)
    at = start
    for i in range(first, until):
        to = write_fragment(HEADER_FIELD_NAMES + i, pool, offsets, out, to)
        to = write_integer(number_at(source, at, numbers[i, 0], numbers[i, 1]), out, to)
        at += numbers[i, 0]
    to = write_fragment(meaning, pool, offsets, out, to)
    if magic < 2:
        has_append_time = is_wrapper and attributes & TIMESTAMP_TYPE
        result, to = write_messages(
            payload,
            begin,
            end,
            magic,
            base_offset,
            has_append_time,
            time,
            pool,
            offsets,
            numbers,
            out,
            to,
        )
    else:
        count = int32_at(source, start + HEADER_BYTES - 4)
        result, to = _write_records(
            payload,
            begin,
            end,
            count,
            base_offset,
            time,
            attributes,
            pool,
            offsets,
            unsafe,
            out,
            to,
        )
    if result != WRITTEN or to + 2 > len(out):
        return NO_ROOM if result == WRITTEN else result, to
    out[to] = 93
    out[to + 1] = 125
    return WRITTEN, to + 2


@device_function
def _write_partial_batch(
    source: U8, at: int, end: int, pool: U8, offsets: I64, out: U8, to: int
) -> tuple[int, int]:
    """Write the bytes of a batch that is cut off; see `_write_batch`."""
    if to + 2 * (end - at) + _BATCH_OVERHEAD_BYTES > len(out):
        return NO_ROOM, to
    for i in range(3):
        size = 8
        number = at
        if i == 1:
            size = 4
            number = at + 8
        elif i == 2:
            size = 1
            number = at + MAGIC_AT
        name = PARTIAL_OFFSET if i == 0 else PARTIAL_LENGTH if i == 1 else PARTIAL_MAGIC
        to = write_fragment(name, pool, offsets, out, to)
        if number + size > end:
            to = write_fragment(NULL, pool, offsets, out, to)
        else:
            to = write_integer(number_at(source, number, size, 1), out, to)
    to = write_fragment(PARTIAL_BYTES, pool, offsets, out, to)
    to = write_hex(source, at, end - at, out, to)
    return WRITTEN, write_fragment(PARTIAL_END, pool, offsets, out, to)


@device_function
def write_records_field(
    source: U8,
    at: int,
    length: int,
    base: int,
    number: int,
    last: int,
    fields: I64Table,
    state: U8,
    batches: I64Table,
    data: U8,
    carry_over: U8,
    arena: U8,
    pool: U8,
    offsets: I64,
    numbers: I64Table,
    unsafe: U8,
    out: U8,
    to: int,
) -> tuple[int, int]:
    """
    Write a `records` field that is not null.

    Args:
        source: The bytes of the message.
        at: Where the content begins.
        length: Its bytes.
        base: Address of the first byte of `source`.
        number: Number of the field among the non-empty ones of the window.
        last: Number of the next exchange's first field.
        fields: [2, fields + 1]: address of each field, and its first batch.
        state: State of each field.
        batches: [3, batches]: start and end address of each payload, and its base offset.
        data: The bytes of a window.
        carry_over: Bytes carried over from earlier windows.
        arena: The decompressed bytes.
        pool: The bytes of all fragments.
        offsets: Offset of each fragment.
        numbers: `HEADER_FIELDS`.
        unsafe: See `write_json_string`.
        out: The output buffer.
        to: Where the output begins in it.

    Returns:
        The result, and where the text ends.
    """
    if to + 2 > len(out):
        return NO_ROOM, to
    out[to] = 91
    to += 1
    if length > 0:
        if number >= last or fields[0, number] != base + at or state[number] != VALID:
            return SLOW_PATH, to
        end = at + length
        first = fields[1, number]
        for batch in range(first, fields[1, number + 1]):
            if to + 2 > len(out):
                return NO_ROOM, to
            if batch > first:
                out[to] = 44
                out[to + 1] = 32
                to += 2
            result, to = _write_batch(
                source,
                at,
                batches[0, batch],
                batches[1, batch],
                batches[2, batch],
                1 if batches[0, batch] != base + at else 0,
                data,
                carry_over,
                arena,
                pool,
                offsets,
                numbers,
                unsafe,
                out,
                to,
            )
            if result != WRITTEN:
                return result, to
            at += LENGTH_END + int32_at(source, at + 8)
        if at < end:
            if to + 2 > len(out):
                return NO_ROOM, to
            if fields[1, number + 1] > first:
                out[to] = 44
                out[to + 1] = 32
                to += 2
            result, to = _write_partial_batch(source, at, end, pool, offsets, out, to)
            if result != WRITTEN:
                return result, to
    if to + 1 > len(out):
        return NO_ROOM, to
    out[to] = 93
    return WRITTEN, to + 1
