"""Writes the messages of message sets as JSON records: a device function of `batch_json_kernel`."""

from __future__ import annotations

from dissector.engine.tape.number_kernels import wrapped_sum
from dissector.engine.tape.primitive_kernels import int32_at, number_at
from dissector.kernel import device_function
from dissector.kernel.arrays import I64, U8, I64Table
from dissector.protocol.records.layout import LENGTH_END
from dissector.view.json.json_constants import (
    HEADER_FIELD_NAMES,
    LEGACY_RECORD_FIELDS_END,
    MESSAGE_FIELDS_END,
    NULL,
    RECORD_KEY,
)
from dissector.view.json.record_json_kernel import NO_ROOM, WRITTEN
from dissector.view.json.scalar_json_kernel import write_integer, write_quoted_hex
from dissector.view.tables.text_kernel import write_fragment

_MESSAGE_OVERHEAD_BYTES = 512
"""Output bytes of a message without key and value, at most."""

_TIMESTAMP = LEGACY_RECORD_FIELDS_END - 1


@device_function
def write_messages(
    source: U8,
    at: int,
    end: int,
    magic: int,
    base_offset: int,
    appended: int,
    time: int,
    pool: U8,
    offsets: I64,
    numbers: I64Table,
    out: U8,
    to: int,
) -> tuple[int, int]:
    """
    Write messages that are known to be valid.

    Args:
        source: The bytes.
        at: Where the first begins.
        end: Where the last ends.
        magic: Magic of all messages.
        base_offset: Base of their offsets.
        appended: Whether they have the append time of their wrapper.
        time: The append time of the wrapper.
        pool: The bytes of all fragments.
        offsets: Offset of each fragment.
        numbers: `HEADER_FIELDS`.
        out: The output buffer.
        to: Where the output begins in it.

    Returns:
        The result, and where the text ends.
    """
    first = at
    while at < end:
        stop = at + LENGTH_END + int32_at(source, at + 8)
        if to + 2 * (stop - at) + _MESSAGE_OVERHEAD_BYTES > len(out):
            return NO_ROOM, to
        if at > first:
            out[to] = 44
            out[to + 1] = 32
            to += 2
        for i in range(MESSAGE_FIELDS_END, LEGACY_RECORD_FIELDS_END):
            to = write_fragment(HEADER_FIELD_NAMES + i, pool, offsets, out, to)
            if i == _TIMESTAMP and magic == 0:
                to = write_fragment(NULL, pool, offsets, out, to)
            else:
                value = number_at(source, at, numbers[i, 0], numbers[i, 1])
                if i == MESSAGE_FIELDS_END:  # `inner_offset` is next: the same bytes, as stored
                    value = wrapped_sum(value, base_offset)
                else:
                    at += numbers[i, 0]
                if i == _TIMESTAMP and appended:
                    value = time
                to = write_integer(value, out, to)
        for i in range(RECORD_KEY, RECORD_KEY + 2):
            length = int32_at(source, at)
            to = write_fragment(i, pool, offsets, out, to)
            to = write_quoted_hex(source, at + 4, length, pool, offsets, out, to)
            at += 4 + max(length, 0)
        out[to] = 125
        to += 1
        at = stop
    return WRITTEN, to
