"""Writes the messages of message sets as JSON records: a device function of `batch_json_kernel`."""

from __future__ import annotations

from dissector.engine.tables.exchange_table import NONE
from dissector.engine.tape.number_kernels import wrapped_sum
from dissector.engine.tape.primitive_kernels import int32_at, number_at
from dissector.kernel import device_function
from dissector.kernel.arrays import U8
from dissector.kernel.digits import write_integer
from dissector.kernel.named_rows import Rows
from dissector.protocol.records.layout import LENGTH_END, MAGIC_AT
from dissector.view.json.json_constants import (
    LEGACY_RECORD_FIELDS_END,
    MESSAGE_FIELDS_END,
    Fragment,
    HeaderField,
)
from dissector.view.json.record_json_kernel import NO_ROOM, WRITTEN
from dissector.view.json.scalar_json_kernel import write_quoted_hex
from dissector.view.tables.text_arrays import TextArrays
from dissector.view.tables.text_kernel import write_fragment

_MESSAGE_OVERHEAD_BYTES = 512
"""Output bytes of a message without key and value, at most."""

_TIMESTAMP = LEGACY_RECORD_FIELDS_END - 1


@device_function
def write_messages(
    source: U8,
    at: int,
    end: int,
    base_offset: int,
    append_time: int,
    header_fields: Rows[HeaderField],
    text: TextArrays,
    to: int,
) -> tuple[int, int]:
    """
    Write messages that are known to be valid.

    Args:
        source: The bytes.
        at: Begin of the first message.
        end: End of the last message.
        base_offset: Base of their offsets.
        append_time: The append time of their wrapper; NONE if each has a separate time.
        header_fields: `HEADER_FIELDS`.
        text: The output.
        to: Begin of the output.

    Returns:
        The result, and the end of the text.
    """
    out = text.out
    first = at
    while at < end:
        magic = source[at + MAGIC_AT]
        stop = at + LENGTH_END + int32_at(source, at + 8)
        if to + 2 * (stop - at) + _MESSAGE_OVERHEAD_BYTES > len(out):
            return NO_ROOM, to
        if at > first:
            out[to] = 44
            out[to + 1] = 32
            to += 2
        for i in range(MESSAGE_FIELDS_END, LEGACY_RECORD_FIELDS_END):
            to = write_fragment(Fragment.HEADER_FIELD_NAMES + i, text, to)
            if i == _TIMESTAMP and magic == 0:
                to = write_fragment(Fragment.NULL, text, to)
            else:
                field = header_fields[i]
                value = number_at(source, at, field.size, field.is_signed)
                if i == MESSAGE_FIELDS_END:  # `inner_offset` is next: the same bytes, as stored
                    value = wrapped_sum(value, base_offset)
                else:
                    at += field.size
                if i == _TIMESTAMP and append_time != NONE:
                    value = append_time
                to = write_integer(value, out, to)
        for i in range(Fragment.RECORD_KEY, Fragment.RECORD_KEY + 2):
            length = int32_at(source, at)
            to = write_fragment(i, text, to)
            to = write_quoted_hex(source, at + 4, length, text, to)
            at += 4 + max(length, 0)
        out[to] = 125
        to += 1
        at = stop
    return WRITTEN, to
