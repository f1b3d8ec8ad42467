"""
The kernel that writes bodies as JSON, straight from the bytes of messages.

It runs the programs of `json_program`, and writes the same text as `json_text(body_json(...))`. It
checks each count and length against the remaining bytes, as the codecs do; bodies that it can't
read, and rare forms, are left to them.
"""

from __future__ import annotations

from dissector.engine.facts.credential_kernel import may_hold_credential
from dissector.engine.tape.primitive_kernels import int16_at, length_at, number_at, varint_at
from dissector.kernel import Kernel, device_function
from dissector.kernel.arrays import I64, U8, Buffers
from dissector.kernel.digits import write_integer, write_uuid
from dissector.kernel.json_strings import write_json_string
from dissector.kernel.named_rows import Rows
from dissector.protocol.messages import UNSUPPORTED_VERSION
from dissector.view.json.batch_json_kernel import write_records_field
from dissector.view.json.body_arrays import BodyArrays, JsonProgramArrays, TagSlot, TextPlace
from dissector.view.json.json_constants import Fragment
from dissector.view.json.json_program import JsonOp
from dissector.view.json.record_json_kernel import NO_ROOM, SLOW_PATH, WRITTEN
from dissector.view.json.scalar_json_kernel import write_boolean, write_quoted_hex
from dissector.view.tables.row_kernel import MAX_ESCAPE_BYTES
from dissector.view.tables.text_arrays import TextArrays, TextUse
from dissector.view.tables.text_kernel import write_fragment

DEPTH = 24
"""Nested arrays at most; declarations have up to nine."""
MAX_TAG_SLOTS = 128
"""Known tags of nested tag sections at most."""

NO_BODY, SLOW_PATH_BODY = -1, -2
"""Special lengths of a text: no body; the body is left to Python."""

_STEP_OVERHEAD_BYTES = 64
"""Output bytes of one step at most, except values with a length."""
_ABSENT = -1


@device_function
def _read_section(
    source: U8,
    at: int,
    end: int,
    first: int,
    count: int,
    tags: I64,
    tag_slots: Rows[TagSlot],
    top: int,
) -> int:
    """Record the offsets of the values of a tag section; return its end, -1 for the slow path."""
    for i in range(top, top + count):
        tag_slots[i].at = _ABSENT
    remaining, at = varint_at(source, at, end)
    if remaining > count:
        return -1
    while remaining > 0 and at >= 0:
        tag, at = varint_at(source, at, end)
        if at < 0:
            return -1
        size, at = varint_at(source, at, end)
        if at < 0 or size > end - at:
            return -1
        index = 0
        while index < count and tags[first + index] != tag:
            index += 1
        if index == count or tag_slots[top + index].at != _ABSENT:
            return -1
        tag_slots[top + index].at = at
        tag_slots[top + index].size = size
        at += size
        remaining -= 1
    return at


@device_function
def _write_body(
    number: int,
    bodies: BodyArrays,
    buffers: Buffers,
    programs: JsonProgramArrays,
    text: TextArrays,
    to: int,
) -> tuple[int, int]:
    """Write the body of a message; return the result, and the end of the text."""
    arrays, tag_slots = programs.arrays, programs.tag_slots
    out, offsets, unsafe = text.out, text.offsets, text.unsafe
    message = bodies.messages[number]
    at, end, step = message.start, message.end, message.step
    field = bodies.first_field[number >> 1]
    last_field = bodies.first_field[(number >> 1) + 1]
    source = buffers.data
    base = 0
    if at >= len(buffers.data):
        source = buffers.carry_over
        base = len(buffers.data)
    at -= base
    end -= base
    depth = 0
    top = 0
    while True:
        now = programs.code[step]
        op, prefix = now.op, now.prefix
        if to + offsets[prefix + 1] - offsets[prefix] + _STEP_OVERHEAD_BYTES > len(out):
            return NO_ROOM, to
        if prefix > 0:
            to = write_fragment(prefix, text, to)
        if op == JsonOp.NUMBER:
            if end - at < now.size:
                return SLOW_PATH, to
            to = write_integer(number_at(source, at, now.size, now.is_signed), out, to)
            at += now.size
            step += 1
        elif op in (JsonOp.TEXT, JsonOp.BYTES, JsonOp.RECORDS):
            length, at = length_at(source, at, end, now.length_op)
            if at < 0 or length < -1 or length > end - at:
                return SLOW_PATH, to
            is_checked = op != JsonOp.RECORDS and now.is_checked
            if is_checked and may_hold_credential(source, at, length, bodies.signs):
                return SLOW_PATH, to
            if length < 0:
                to = write_fragment(Fragment.NULL, text, to)
            elif op == JsonOp.TEXT:
                if to + MAX_ESCAPE_BYTES * length + _STEP_OVERHEAD_BYTES > len(out):
                    return NO_ROOM, to
                to = write_json_string(source, at, length, 1, unsafe, out, to)
            elif op == JsonOp.BYTES:
                if to + 2 * length + _STEP_OVERHEAD_BYTES > len(out):
                    return NO_ROOM, to
                to = write_quoted_hex(source, at, length, text, to)
            else:
                result, to = write_records_field(
                    base + at, length, field, last_field, bodies, buffers, text, to
                )
                if result != WRITTEN:
                    return result, to
                if length > 0:
                    field += 1
            at += max(length, 0)
            step += 1
        elif op == JsonOp.ARRAY:
            length, at = length_at(source, at, end, now.length_op)
            if at < 0 or length < -1 or length * now.size > end - at:
                return SLOW_PATH, to
            if length < 0:
                to = write_fragment(Fragment.NULL, text, to)
                step = now.behind
            else:
                out[to] = 91
                to += 1
                if length == 0:
                    out[to] = 93
                    to += 1
                    step = now.behind
                else:
                    step += 1
                    arrays[depth].step = step
                    arrays[depth].left = length
                    depth += 1
        elif op == JsonOp.NEXT:
            array = arrays[depth - 1]
            array.left -= 1
            if array.left > 0:
                out[to] = 44
                out[to + 1] = 32
                to += 2
                step = array.step
            else:
                out[to] = 93
                to += 1
                depth -= 1
                step += 1
        elif op == JsonOp.BOOLEAN:
            if at >= end:
                return SLOW_PATH, to
            to = write_boolean(source[at], text, to)
            at += 1
            step += 1
        elif op == JsonOp.TAGS:
            count = now.tag_count
            at = _read_section(source, at, end, now.first_tag, count, programs.tags, tag_slots, top)
            if at < 0:
                return SLOW_PATH, to
            if count > 0:
                top += count + 1
                tag_slots[top - 1].at = at
            step += 1
        elif op == JsonOp.TAG:
            at = tag_slots[top - 1 - now.from_last].at
            if at == _ABSENT:
                default = now.default
                if to + offsets[default + 1] - offsets[default] + _STEP_OVERHEAD_BYTES > len(out):
                    return NO_ROOM, to
                to = write_fragment(default, text, to)
                step = now.behind
            else:
                step += 1
        elif op == JsonOp.TAG_END:
            slot = tag_slots[top - 1 - now.from_last]
            if at != slot.at + slot.size:
                return SLOW_PATH, to
            step += 1
        elif op == JsonOp.SECTION_END:
            at = tag_slots[top - 1].at
            top -= now.tag_count + 1
            step += 1
        elif op == JsonOp.UUID:
            if end - at < 16:
                return SLOW_PATH, to
            to = write_uuid(source, at, out, to)
            at += 16
            step += 1
        elif op == JsonOp.NULLABLE:
            if at >= end:
                return SLOW_PATH, to
            if source[at] >= 128:
                to = write_fragment(Fragment.NULL, text, to)
                step = now.behind
            else:
                step += 1
            at += 1
        elif op == JsonOp.WRITE:
            step += 1
        elif op == JsonOp.SKIP:
            at += now.size
            if at > end:
                return SLOW_PATH, to
            step += 1
        elif op == JsonOp.SKIP_TEXT:
            length, at = length_at(source, at, end, now.length_op)
            if at < 0 or length < -1 or length > end - at:
                return SLOW_PATH, to
            at += max(length, 0)
            step += 1
        elif op == JsonOp.VERSION_REFUSAL:
            if end - at >= 2 and int16_at(source, at) == UNSUPPORTED_VERSION:
                return SLOW_PATH, to
            step += 1
        elif op == JsonOp.END:
            return WRITTEN, to
        else:
            return SLOW_PATH, to


@Kernel
def write_bodies(
    bodies: BodyArrays,
    buffers: Buffers,
    programs: JsonProgramArrays,
    text: TextArrays,
    first: int,
    until: int,
    places: Rows[TextPlace],
    used: TextUse,
) -> int:
    """
    Write the bodies of exchanges until all are written, or no more fit; return the next exchange.

    Args:
        bodies: The messages.
        buffers: Their bytes.
        programs: Their programs.
        text: The output.
        first: The first exchange.
        until: The exchange after the last.
        places: Set to the text of each message.
        used: Receives the number of bytes written.
    """
    to = 0
    row = first
    while row < until:
        begin = to
        result = WRITTEN
        for number in range(2 * row, 2 * row + 2):
            place = places[number]
            place.length = NO_BODY
            if bodies.messages[number].step >= 0:
                result, stop = _write_body(number, bodies, buffers, programs, text, to)
                if result == NO_ROOM:
                    break
                place.start = to
                place.length = stop - to if result == WRITTEN else SLOW_PATH_BODY
                if result == WRITTEN:
                    to = stop
        if result == NO_ROOM:
            to = begin
            break
        row += 1
    used.bytes = to
    return row
