"""Device functions of `body_kernel` that write batches and messages of `records` fields as JSON."""

from __future__ import annotations

from dissector.engine.records.batch_table import HEADER_BYTES, VALID
from dissector.engine.tables.exchange_table import NONE
from dissector.engine.tape.primitive_kernels import int16_at, int32_at, number_at
from dissector.kernel import device_function
from dissector.kernel.arrays import U8, Buffers
from dissector.kernel.digits import write_hex, write_integer
from dissector.protocol.records import layout
from dissector.view.json.body_arrays import BodyArrays
from dissector.view.json.json_constants import (
    ATTRIBUTES_PER_MAGIC,
    BATCH_FIELDS_END,
    MESSAGE_FIELDS_END,
    Fragment,
)
from dissector.view.json.message_json_kernel import write_messages
from dissector.view.json.record_json_kernel import (
    NO_ROOM,
    SLOW_PATH,
    WRITTEN,
    read_nullable_length,
    write_record,
)
from dissector.view.tables.text_arrays import TextArrays
from dissector.view.tables.text_kernel import write_fragment

_BATCH_OVERHEAD_BYTES = 1024
"""Output bytes of a batch, or message, without its records, at most."""

_MESSAGE_TIMESTAMP_AT = layout.MESSAGE_0.size
_ATTRIBUTE_BITS = 2 * layout.DELETE_HORIZON - 1
_MAX_BASE = 1 << 62
"""Base offsets and timestamps above this are left to Python, because sums might overflow."""


@device_function
def _write_records(
    source: U8,
    begin: int,
    end: int,
    base_offset: int,
    base_time: int,
    attributes: int,
    text: TextArrays,
    to: int,
) -> tuple[int, int, int]:
    """Write the records of a batch; return the result, their number, and the end of the text."""
    out = text.out
    count = 0
    while begin < end:
        size, begin = read_nullable_length(source, begin, end)
        if begin < 0 or size < 0:
            return SLOW_PATH, count, to
        if count > 0:
            out[to] = 44
            out[to + 1] = 32
            to += 2
        result, to = write_record(
            source, begin, begin + size, base_offset, base_time, attributes, text, to
        )
        if result != WRITTEN:
            return result, count, to
        begin += size
        count += 1
    return WRITTEN, count, to


@device_function
def _is_large(value: int) -> bool:
    """Return whether a base offset or time is left to Python."""
    return value > _MAX_BASE or value < -_MAX_BASE


@device_function
def _write_batch(
    source: U8,
    start: int,
    base: int,
    batch: int,
    bodies: BodyArrays,
    buffers: Buffers,
    text: TextArrays,
    to: int,
) -> tuple[int, int]:
    """
    Write a batch, or message.

    Args:
        source: The bytes of the message.
        start: Begin of the batch.
        base: Address of the first byte of `source`.
        batch: Number of the batch.
        bodies: The batches.
        buffers: The bytes of payloads.
        text: The output.
        to: Begin of the output.

    Returns:
        The result, and the end of the text.
    """
    out, header_fields = text.out, bodies.header_fields
    if to + _BATCH_OVERHEAD_BYTES > len(out):
        return NO_ROOM, to
    found = bodies.batches[batch]
    begin, end, base_offset = found.start, found.end, found.base_offset
    is_wrapper = begin != base + start
    payload = buffers.data
    if begin >= len(buffers.data) + len(buffers.carry_over):
        begin -= len(buffers.data) + len(buffers.carry_over)
        end -= len(buffers.data) + len(buffers.carry_over)
        payload = buffers.arena
    elif begin >= len(buffers.data):
        begin -= len(buffers.data)
        end -= len(buffers.data)
        payload = buffers.carry_over
    magic = 0 | source[start + layout.MAGIC_AT]
    if magic < 2:
        attributes = 0 | source[start + layout.MAGIC_AT + 1]
        first, until = BATCH_FIELDS_END, MESSAGE_FIELDS_END - 1 + magic
        meaning = (
            Fragment.MESSAGE_ATTRIBUTES
            + magic * ATTRIBUTES_PER_MAGIC
            + (attributes & (ATTRIBUTES_PER_MAGIC - 1))
        )
        time_at = start + _MESSAGE_TIMESTAMP_AT
    else:
        attributes = int16_at(source, start + layout.BATCH_CRC_FROM)
        first, until = 0, BATCH_FIELDS_END
        meaning = Fragment.BATCH_ATTRIBUTES + (attributes & _ATTRIBUTE_BITS)
        time_at = start + (35 if attributes & layout.TIMESTAMP_TYPE else 27)
    time = number_at(source, time_at, 8, 1)
    at = start
    for i in range(first, until):
        to = write_fragment(Fragment.HEADER_FIELD_NAMES + i, text, to)
        field = header_fields[i]
        to = write_integer(number_at(source, at, field.size, field.is_signed), out, to)
        at += field.size
    to = write_fragment(meaning, text, to)
    if magic < 2:
        append_time = NONE
        if is_wrapper and attributes & layout.TIMESTAMP_TYPE:
            append_time = time
            if time == NONE:
                return SLOW_PATH, to
        result, to = write_messages(
            payload, begin, end, base_offset, append_time, header_fields, text, to
        )
    else:
        if _is_large(base_offset) or _is_large(time):
            return SLOW_PATH, to
        result, count, to = _write_records(
            payload, begin, end, base_offset, time, attributes, text, to
        )
        if result == WRITTEN and count != int32_at(source, start + HEADER_BYTES - 4):
            return SLOW_PATH, to
    if result != WRITTEN or to + 2 > len(out):
        return NO_ROOM if result == WRITTEN else result, to
    out[to] = 93
    out[to + 1] = 125
    return WRITTEN, to + 2


@device_function
def _write_partial_batch(
    source: U8, at: int, end: int, text: TextArrays, to: int
) -> tuple[int, int]:
    """Write the bytes of a truncated batch; see `_write_batch`."""
    out = text.out
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
            number = at + layout.MAGIC_AT
        name = (
            Fragment.PARTIAL_OFFSET
            if i == 0
            else Fragment.PARTIAL_LENGTH
            if i == 1
            else Fragment.PARTIAL_MAGIC
        )
        to = write_fragment(name, text, to)
        if number + size > end:
            to = write_fragment(Fragment.NULL, text, to)
        else:
            to = write_integer(number_at(source, number, size, 1), out, to)
    to = write_fragment(Fragment.PARTIAL_BYTES, text, to)
    to = write_hex(source, at, end - at, out, to)
    return WRITTEN, write_fragment(Fragment.PARTIAL_END, text, to)


@device_function
def write_records_field(
    address: int,
    length: int,
    number: int,
    last: int,
    bodies: BodyArrays,
    buffers: Buffers,
    text: TextArrays,
    to: int,
) -> tuple[int, int]:
    """
    Write a `records` field that is not null.

    Args:
        address: Address of the content.
        length: Its bytes.
        number: Number of the field among the non-empty ones of the window.
        last: Number of the next exchange's first field.
        bodies: The fields and batches.
        buffers: The bytes of the window, and of payloads.
        text: The output.
        to: Begin of the output.

    Returns:
        The result, and the end of the text.
    """
    out = text.out
    if to + 2 > len(out):
        return NO_ROOM, to
    out[to] = 91
    to += 1
    if length > 0:
        fields = bodies.fields
        if number >= last or fields[number].start != address or bodies.state[number] != VALID:
            return SLOW_PATH, to
        source = buffers.data
        base = 0
        if address >= len(buffers.data):
            source = buffers.carry_over
            base = len(buffers.data)
        at = address - base
        end = at + length
        first = fields[number].first_batch
        for batch in range(first, fields[number + 1].first_batch):
            if to + 2 > len(out):
                return NO_ROOM, to
            if batch > first:
                out[to] = 44
                out[to + 1] = 32
                to += 2
            result, to = _write_batch(source, at, base, batch, bodies, buffers, text, to)
            if result != WRITTEN:
                return result, to
            at += layout.LENGTH_END + int32_at(source, at + 8)
        if at < end:
            if to + 2 > len(out):
                return NO_ROOM, to
            if fields[number + 1].first_batch > first:
                out[to] = 44
                out[to + 1] = 32
                to += 2
            result, to = _write_partial_batch(source, at, end, text, to)
            if result != WRITTEN:
                return result, to
    if to + 1 > len(out):
        return NO_ROOM, to
    out[to] = 93
    return WRITTEN, to + 1
