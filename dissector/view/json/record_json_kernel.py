"""One record as JSON: the part of `body_records` that is done most often."""

from __future__ import annotations

from typing import Any

from dissector.engine.tape.primitive_kernels import int16_at, number_at, varint_at
from dissector.kernel import device_function
from dissector.protocol.records.layout import CONTROL as IS_CONTROL
from dissector.protocol.records.layout import TIMESTAMP_TYPE
from dissector.view.json.json_constants import (
    CONTROL,
    OF_ATTRIBUTES,
    OF_HEADER_KEY,
    OF_HEADER_VALUE,
    OF_HEADERS,
    OF_KEY,
    OF_OFFSET,
    OF_OFFSET_DELTA,
    OF_TIMESTAMP,
    OF_TIMESTAMP_DELTA,
    OF_VALUE,
    OLD_MEANING,
)
from dissector.view.json.scalar_json_kernel import integer, quoted_hex
from dissector.view.tables.row_kernel import WIDEST_BYTE
from dissector.view.tables.text_kernel import fragment, json_quoted

WRITTEN, LEFT, NO_ROOM = range(3)
"""What became of something: written; left to Python; there was no room for it."""

_RECORD_ROOM = 512
"""Room for all of a record but key, value and headers."""
_HEADER_ROOM = 64

_LEAST_RECORD = 6
_CONTROL_KEY_BYTES = 4
_TYPES = OLD_MEANING - CONTROL


@device_function
def _varlong(source: Any, at: int, end: int) -> tuple[int, int]:
    """Read a varint of up to 56 bits; the second number is where it ends, -1 if it is none."""
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
def length_or_null(source: Any, at: int, end: int) -> tuple[int, int]:
    """Read a length that may be null; the second number is where it ends, -1 if it is none."""
    size, at = varint_at(source, at, end)
    if at < 0 or size == 1:
        return -1, at
    return (0, -1) if size & 1 or size >> 1 > end - at else (size >> 1, at)


@device_function
def _headers(
    source: Any,
    at: int,
    end: int,
    count: int,
    pool: Any,
    offsets: Any,
    unsafe: Any,
    out: Any,
    to: int,
) -> tuple[int, int, int]:
    """Write the headers of a record; return what became of them, their end, and that in `out`."""
    for i in range(count):
        key_length, key = length_or_null(source, at, end)
        if key < 0 or key_length < 0:
            return LEFT, at, to
        value_length, value = length_or_null(source, key + key_length, end)
        if value < 0:
            return LEFT, at, to
        at = value + max(value_length, 0)
        if to + WIDEST_BYTE * key_length + 2 * value_length + _HEADER_ROOM > len(out):
            return NO_ROOM, at, to
        if i > 0:
            out[to] = 44
            out[to + 1] = 32
            to += 2
        to = fragment(OF_HEADER_KEY, pool, offsets, out, to)
        to = json_quoted(source, key, key_length, 1, unsafe, out, to)
        to = fragment(OF_HEADER_VALUE, pool, offsets, out, to)
        to = quoted_hex(source, value, value_length, pool, offsets, out, to)
        out[to] = 125
        to += 1
    return WRITTEN, at, to


@device_function
def record(
    source: Any,
    at: int,
    end: int,
    base_offset: int,
    base_time: int,
    attributes: int,
    pool: Any,
    offsets: Any,
    unsafe: Any,
    out: Any,
    to: int,
) -> tuple[int, int]:
    """
    Write a record.

    Args:
        source: The bytes.
        at: Where the record begins, behind its length.
        end: Where it ends.
        base_offset: Of the batch.
        base_time: Of the batch; the time of the record where the broker set it.
        attributes: Of the batch.
        pool: The bytes of all fragments.
        offsets: Where each begins.
        unsafe: See `json_quoted`.
        out: The text goes here.
        to: Where it begins there.

    Returns:
        What became of it, and where the text ends.
    """
    if end - at < _LEAST_RECORD:
        return LEFT, to
    if to + 2 * (end - at) + _RECORD_ROOM > len(out):
        return NO_ROOM, to
    to = fragment(OF_ATTRIBUTES, pool, offsets, out, to)
    to = integer(number_at(source, at, 1, 1), out, to)
    zigzag, at = _varlong(source, at + 1, end)
    time_delta = zigzag >> 1 ^ -(zigzag & 1)
    if at >= 0:
        zigzag, at = varint_at(source, at, end)
    if at < 0:
        return LEFT, to
    offset_delta = zigzag >> 1 ^ -(zigzag & 1)
    to = integer(time_delta, out, fragment(OF_TIMESTAMP_DELTA, pool, offsets, out, to))
    to = integer(offset_delta, out, fragment(OF_OFFSET_DELTA, pool, offsets, out, to))
    key_length, key = length_or_null(source, at, end)
    if key < 0:
        return LEFT, to
    to = fragment(OF_KEY, pool, offsets, out, to)
    to = quoted_hex(source, key, key_length, pool, offsets, out, to)
    length, at = length_or_null(source, key + max(key_length, 0), end)
    if at < 0:
        return LEFT, to
    to = fragment(OF_VALUE, pool, offsets, out, to)
    to = quoted_hex(source, at, length, pool, offsets, out, to)
    count, at = length_or_null(source, at + max(length, 0), end)
    if at < 0 or count < 0 or 2 * count > end - at:
        return LEFT, to
    to = fragment(OF_HEADERS, pool, offsets, out, to)
    if count > 0:
        result, at, to = _headers(source, at, end, count, pool, offsets, unsafe, out, to)
        if result != WRITTEN:
            return result, to
        if to + _RECORD_ROOM > len(out):
            return NO_ROOM, to
    if at != end:
        return LEFT, to
    to = integer(base_offset + offset_delta, out, fragment(OF_OFFSET, pool, offsets, out, to))
    if not attributes & TIMESTAMP_TYPE:
        base_time += time_delta
    to = integer(base_time, out, fragment(OF_TIMESTAMP, pool, offsets, out, to))
    if attributes & IS_CONTROL:
        if key_length < _CONTROL_KEY_BYTES:
            return LEFT, to
        number = int16_at(source, key + 2)
        if number < 0 or number >= _TYPES:
            return LEFT, to
        to = fragment(CONTROL + number, pool, offsets, out, to)
    out[to] = 125
    return WRITTEN, to + 1
