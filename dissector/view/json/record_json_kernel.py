"""Writes a record as JSON: the device function of `batch_json_kernel` that is called most often."""

from __future__ import annotations

from dissector.engine.tape.primitive_kernels import int16_at, number_at, varint_at
from dissector.kernel import device_function
from dissector.kernel.arrays import U8
from dissector.kernel.digits import write_integer
from dissector.kernel.json_strings import write_json_string
from dissector.protocol.records.layout import CONTROL, TIMESTAMP_TYPE
from dissector.view.json.json_constants import Fragment
from dissector.view.json.scalar_json_kernel import write_quoted_hex
from dissector.view.tables.row_kernel import MAX_ESCAPE_BYTES
from dissector.view.tables.text_arrays import TextArrays
from dissector.view.tables.text_kernel import write_fragment

WRITTEN, SLOW_PATH, NO_ROOM = range(3)
"""Results: written; left to Python; the output buffer is full."""

_RECORD_OVERHEAD_BYTES = 512
"""Output bytes of a record without key, value and headers, at most."""
_HEADER_OVERHEAD_BYTES = 64

_MIN_RECORD_BYTES = 6
_CONTROL_KEY_BYTES = 4
_CONTROL_TYPE_COUNT = Fragment.MESSAGE_ATTRIBUTES - Fragment.CONTROL


@device_function
def _read_varlong(source: U8, at: int, end: int) -> tuple[int, int]:
    """Read a varint of up to 56 bits; the second number is its end, -1 if it is invalid."""
    value = 0
    shift = 0
    while shift <= 49 and at < end:
        byte = 0 | source[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
    return 0, -1


@device_function
def read_nullable_length(source: U8, at: int, end: int) -> tuple[int, int]:
    """Read a length, -1 for null; the second number is its end, -1 if it is invalid."""
    size, at = varint_at(source, at, end)
    if at < 0 or size == 1:
        return -1, at
    return (0, -1) if size & 1 or size >> 1 > end - at else (size >> 1, at)


@device_function
def _write_headers(
    source: U8, at: int, end: int, count: int, text: TextArrays, to: int
) -> tuple[int, int, int]:
    """Write the headers of a record; return the result, their end, and the end of the text."""
    out = text.out
    for i in range(count):
        key_length, key = read_nullable_length(source, at, end)
        if key < 0 or key_length < 0:
            return SLOW_PATH, at, to
        value_length, value = read_nullable_length(source, key + key_length, end)
        if value < 0:
            return SLOW_PATH, at, to
        at = value + max(value_length, 0)
        if to + MAX_ESCAPE_BYTES * key_length + 2 * value_length + _HEADER_OVERHEAD_BYTES > len(
            out
        ):
            return NO_ROOM, at, to
        if i > 0:
            out[to] = 44
            out[to + 1] = 32
            to += 2
        to = write_fragment(Fragment.RECORD_HEADER_KEY, text, to)
        to = write_json_string(source, key, key_length, 1, text.unsafe, out, to)
        to = write_fragment(Fragment.RECORD_HEADER_VALUE, text, to)
        to = write_quoted_hex(source, value, value_length, text, to)
        out[to] = 125
        to += 1
    return WRITTEN, at, to


@device_function
def write_record(
    source: U8,
    at: int,
    end: int,
    base_offset: int,
    base_time: int,
    attributes: int,
    text: TextArrays,
    to: int,
) -> tuple[int, int]:
    """
    Write a record.

    Args:
        source: The bytes.
        at: Begin of the record, after its length.
        end: End of the record.
        base_offset: Base offset of the batch.
        base_time: Base timestamp of the batch, or its append time, which is then the record's.
        attributes: Attributes of the batch.
        text: The output.
        to: Begin of the output.

    Returns:
        The result, and the end of the text.
    """
    out = text.out
    if end - at < _MIN_RECORD_BYTES:
        return SLOW_PATH, to
    if to + 2 * (end - at) + _RECORD_OVERHEAD_BYTES > len(out):
        return NO_ROOM, to
    to = write_fragment(Fragment.RECORD_ATTRIBUTES, text, to)
    to = write_integer(number_at(source, at, 1, 1), out, to)
    zigzag, at = _read_varlong(source, at + 1, end)
    time_delta = zigzag >> 1 ^ -(zigzag & 1)
    if at >= 0:
        zigzag, at = varint_at(source, at, end)
    if at < 0:
        return SLOW_PATH, to
    offset_delta = zigzag >> 1 ^ -(zigzag & 1)
    to = write_integer(time_delta, out, write_fragment(Fragment.RECORD_TIMESTAMP_DELTA, text, to))
    to = write_integer(offset_delta, out, write_fragment(Fragment.RECORD_OFFSET_DELTA, text, to))
    key_length, key = read_nullable_length(source, at, end)
    if key < 0:
        return SLOW_PATH, to
    to = write_fragment(Fragment.RECORD_KEY, text, to)
    to = write_quoted_hex(source, key, key_length, text, to)
    length, at = read_nullable_length(source, key + max(key_length, 0), end)
    if at < 0:
        return SLOW_PATH, to
    to = write_fragment(Fragment.RECORD_VALUE, text, to)
    to = write_quoted_hex(source, at, length, text, to)
    count, at = read_nullable_length(source, at + max(length, 0), end)
    if at < 0 or count < 0 or 2 * count > end - at:
        return SLOW_PATH, to
    to = write_fragment(Fragment.RECORD_HEADERS, text, to)
    if count > 0:
        result, at, to = _write_headers(source, at, end, count, text, to)
        if result != WRITTEN:
            return result, to
        if to + _RECORD_OVERHEAD_BYTES > len(out):
            return NO_ROOM, to
    if at != end:
        return SLOW_PATH, to
    to = write_fragment(Fragment.RECORD_OFFSET, text, to)
    to = write_integer(base_offset + offset_delta, out, to)
    if not attributes & TIMESTAMP_TYPE:
        base_time += time_delta
    to = write_integer(base_time, out, write_fragment(Fragment.RECORD_TIMESTAMP, text, to))
    if attributes & CONTROL:
        if key_length < _CONTROL_KEY_BYTES:
            return SLOW_PATH, to
        number = int16_at(source, key + 2)
        if number < 0 or number >= _CONTROL_TYPE_COUNT:
            return SLOW_PATH, to
        to = write_fragment(Fragment.CONTROL + number, text, to)
    out[to] = 125
    return WRITTEN, to + 1
