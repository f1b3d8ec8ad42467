"""Record batches as JSON: the part of `body_loop` that writes a `records` field."""

from __future__ import annotations

from typing import Any

from dissector.engine.batch_columns import (
    HEADER_BYTES,
    RIGHT,
)
from dissector.engine.wire import int16_at, int32_at, number_at
from dissector.kernel import part
from dissector.protocol.records.layout import (
    DELETE_HORIZON,
    LENGTH_END,
    MAGIC_AT,
    TIMESTAMP_TYPE,
)
from dissector.view.body_fragments import (
    BATCH_FIELDS,
    CUT_BYTES,
    CUT_END,
    CUT_LENGTH,
    CUT_MAGIC,
    CUT_OFFSET,
    MEANING,
    NULL,
)
from dissector.view.body_record import LEFT, NO_ROOM, WRITTEN, length_or_null, record
from dissector.view.body_scalars import integer
from dissector.view.render_text import fragment, hexed

_BATCH_ROOM = 1024
"""Room for all of a batch but its records."""

_MEANING_BITS = 2 * DELETE_HORIZON - 1
_LARGE = 1 << 62
"""Numbers so large that a sum might not fit are left to Python."""


@part
def _batch(
    source: Any,
    start: int,
    begin: int,
    end: int,
    data: Any,
    held: Any,
    arena: Any,
    pool: Any,
    offsets: Any,
    numbers: Any,
    unsafe: Any,
    out: Any,
    to: int,
) -> tuple[int, int]:
    """
    Write a batch whose header begins at `start`; its records lie from address `begin` to `end`.

    Returns:
        What became of it, and where the text ends.
    """
    if to + _BATCH_ROOM > len(out):
        return NO_ROOM, to
    at = start
    for i in range(len(numbers)):
        to = fragment(BATCH_FIELDS + i, pool, offsets, out, to)
        to = integer(number_at(source, at, numbers[i, 0], numbers[i, 1]), out, to)
        at += numbers[i, 0]
    base_offset = number_at(source, start, 8, 1)
    attributes = int16_at(source, start + 21)
    base_time = number_at(source, start + 27, 8, 1)
    if attributes & TIMESTAMP_TYPE:
        base_time = number_at(source, start + 35, 8, 1)
    count = int32_at(source, start + HEADER_BYTES - 4)
    if base_offset > _LARGE or base_offset < -_LARGE or base_time > _LARGE or base_time < -_LARGE:
        return LEFT, to
    to = fragment(MEANING + (attributes & _MEANING_BITS), pool, offsets, out, to)
    payload = data
    if begin >= len(data) + len(held):
        begin -= len(data) + len(held)
        end -= len(data) + len(held)
        payload = arena
    elif begin >= len(data):
        begin -= len(data)
        end -= len(data)
        payload = held
    for i in range(count):
        size, begin = length_or_null(payload, begin, end)
        if begin < 0 or size < 0:
            return LEFT, to
        if i > 0:
            out[to] = 44
            out[to + 1] = 32
            to += 2
        result, to = record(
            payload,
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
    if begin != end or to + 2 > len(out):
        return LEFT if begin != end else NO_ROOM, to
    out[to] = 93
    out[to + 1] = 125
    return WRITTEN, to + 2


@part
def _cut_batch(
    source: Any, at: int, end: int, pool: Any, offsets: Any, out: Any, to: int
) -> tuple[int, int]:
    """Write what is there of a batch that is cut off; return as `_batch` does."""
    if to + 2 * (end - at) + _BATCH_ROOM > len(out):
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
        name = CUT_OFFSET if i == 0 else CUT_LENGTH if i == 1 else CUT_MAGIC
        to = fragment(name, pool, offsets, out, to)
        if number + size > end:
            to = fragment(NULL, pool, offsets, out, to)
        else:
            to = integer(number_at(source, number, size, 1), out, to)
    to = fragment(CUT_BYTES, pool, offsets, out, to)
    to = hexed(source, at, end - at, out, to)
    return WRITTEN, fragment(CUT_END, pool, offsets, out, to)


@part
def records(
    source: Any,
    at: int,
    length: int,
    base: int,
    number: int,
    last: int,
    fields: Any,
    state: Any,
    batches: Any,
    data: Any,
    held: Any,
    arena: Any,
    pool: Any,
    offsets: Any,
    numbers: Any,
    unsafe: Any,
    out: Any,
    to: int,
) -> tuple[int, int]:
    """
    Write a `records` field that is not null.

    Args:
        source: The bytes of the message.
        at: Where the content begins.
        length: Its bytes.
        base: Address of the first byte of `source`.
        number: Number of the field among those that are not empty.
        last: The first number that is none of this exchange's fields.
        fields: [2, fields + 1]: address of each, and its first batch.
        state: Of each field.
        batches: [3, batches]: address of each; of its records; behind these.
        data: The bytes of a window.
        held: More bytes.
        arena: What was compressed.
        pool: The bytes of all fragments.
        offsets: Where each begins.
        numbers: `BATCH_NUMBERS`.
        unsafe: See `json_quoted`.
        out: The text goes here.
        to: Where it begins there.

    Returns:
        What became of it, and where the text ends.
    """
    if to + 2 > len(out):
        return NO_ROOM, to
    out[to] = 91
    to += 1
    if length > 0:
        if number >= last or fields[0, number] != base + at or state[number] != RIGHT:
            return LEFT, to
        end = at + length
        first = fields[1, number]
        for batch in range(first, fields[1, number + 1]):
            if to + 2 > len(out):
                return NO_ROOM, to
            if batch > first:
                out[to] = 44
                out[to + 1] = 32
                to += 2
            result, to = _batch(
                source,
                at,
                batches[1, batch],
                batches[2, batch],
                data,
                held,
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
            result, to = _cut_batch(source, at, end, pool, offsets, out, to)
            if result != WRITTEN:
                return result, to
    if to + 1 > len(out):
        return NO_ROOM, to
    out[to] = 93
    return WRITTEN, to + 1
