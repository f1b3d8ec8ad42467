"""
Runs the programs of `proto_programs` that write the text of a Protobuf value.

A message is read once to find where its fields are, and which of those with one name counts; then
these are written in the order of their declaration, each message inside it likewise.
"""

from __future__ import annotations

from dissector.kernel import device_function
from dissector.kernel.arrays import U8
from dissector.kernel.named_rows import Rows
from dissector.values.steps.field_arrays import DEPTH, MAX_SEEN, Form, SeenField, TextOutput, Work
from dissector.values.steps.proto_kernel import (
    ProtoOp,
    ProtoProgram,
    ProtoStyle,
    field_of,
    integer_of,
    read_field,
)
from dissector.values.steps.value_texts import (
    FULL,
    REFUSED,
    Put,
    is_new_key,
    put,
    put_comma,
    put_literal,
    put_seconds,
)
from dissector.values.steps.varint_kernels import output_room, varint_at


class Literal:
    """Where each program has literals: one or two bytes each, and null."""

    QUOTE, LIST, MAP, NULL = 0, 1, 3, 5


LITERALS = b'"[]{}null'
_NULL_BYTES = 4
_TOO_MUCH = 1 << 40


@device_function
def write_proto(data: U8, at: int, end: int, row: int, program: ProtoProgram, work: Work) -> int:
    """Write the text of a value behind its lead, and return the form of what it is."""
    text = work.text
    frames = work.frames
    room = output_room(end - at)
    left = room - _scan(data, at, end, 0, 0, program, work.seen)
    begin = text.use[0].bytes
    to = _opened(data, 0, 0, program, work, begin)
    depth = 0
    around = 0
    base = 0
    slot = 0
    item = -1
    is_first = 1
    known = 0
    first_key = 0
    key_begin = to
    while to >= 0 and left >= 0:
        kind = program.types[around]
        if slot == kind.slots or kind.style >= ProtoStyle.TIMESTAMP:
            to = _closed(kind.style, is_first, program.literals, text, to)
            if depth == 0:
                break
            depth -= 1
            around = frames[depth].left
            slot = frames[depth].step
            item = frames[depth].end
            first_key = frames[depth].keys
            base -= program.types[around].seen
            is_first = 0
            continue
        now = program.slots[kind.first_slot + slot]
        start = work.seen[base + slot].start
        stop = work.seen[base + slot].end
        if item < 0 and start < 0 and now.default_size == 0:
            slot += 1
        elif item < 0:
            if kind.style == ProtoStyle.ENTRY and slot == 1:
                if is_new_key(text, first_key, known, key_begin, to) == 0:
                    return Form.REFUSED
                known += 1
            skipped = 2 * is_first  # the comma
            is_first = 0
            size = now.name_size - skipped
            to = put_literal(program.literals, now.name + skipped, size, text, to)
            if start < 0:
                to = put_literal(program.literals, now.default, now.default_size, text, to)
                slot += 1
                continue
            if now.brackets:
                to = put_literal(program.literals, now.brackets, 1, text, to)
            if kind.style != ProtoStyle.ENTRY:
                first_key = known
            item = start
        elif item >= stop:
            if now.brackets:
                to = put_literal(program.literals, now.brackets + 1, 1, text, to)
            if kind.style != ProtoStyle.ENTRY:
                known = first_key
            item = -1
            slot += 1
        else:
            key, at = varint_at(data, item, stop)
            place = field_of(program, around, key, work.seen[base + slot].place)
            if program.fields[place].op != ProtoOp.MESSAGE:
                to, item = _put_field(data, at, stop, place, program, text, to)
                continue
            size, at = varint_at(data, at, stop)
            if now.brackets:
                to = put_comma(text, to)
            inner = program.fields[place].message
            base += kind.seen
            if depth == DEPTH or base + program.types[inner].seen > MAX_SEEN:
                return Form.REFUSED
            frames[depth].left = around
            frames[depth].step = slot
            frames[depth].end = at + size
            frames[depth].keys = first_key
            depth += 1
            around = inner
            slot = 0
            item = -1
            is_first = 1
            left -= _scan(data, at, at + size, around, base, program, work.seen)
            to = _opened(data, around, base, program, work, to)
            key_begin = to
    if to < 0 or left < 0 or to - begin > room:
        return Form.FULL if to == FULL else Form.REFUSED
    work.found.number[row] = begin
    work.found.size[row] = to - begin
    text.use[0].bytes = to
    return Form.WRITTEN


@device_function
def _scan(
    data: U8,
    at: int,
    end: int,
    around: int,
    base: int,
    program: ProtoProgram,
    seen: Rows[SeenField],
) -> int:
    """Find the fields of a message; return what it takes of the output, too much if it can't be."""
    kind = program.types[around]
    cost = kind.output
    for i in range(base, base + kind.seen):
        seen[i].start = -1
    place = kind.first
    last = -1
    while at < end:
        key_at = at
        key, at = varint_at(data, at, end)
        if at < 0:
            return _TOO_MUCH
        place = field_of(program, around, key, place)
        if place < 0:
            return _TOO_MUCH
        field = program.fields[place]
        bits, at = read_field(data, at, end, field.op, field.size)
        if at < 0:
            return _TOO_MUCH
        cost += field.output * (bits if field.op == ProtoOp.PACKED_VARINTS else 1)
        one = base + field.slot
        if seen[one].start < 0 or not field.is_list:
            if field.op == ProtoOp.MESSAGE and seen[one].start >= 0:
                return _TOO_MUCH  # its pieces count together
            if field.oneof:
                other = seen[base + field.oneof].start
                if other >= 0 and other != field.slot:
                    seen[base + other].start = -1
                seen[base + field.oneof].start = field.slot
            seen[one].start = key_at
            seen[one].place = place
        elif field.slot != last:
            return _TOO_MUCH  # its items are not together
        seen[one].end = at
        last = field.slot
    return cost


@device_function
def _opened(data: U8, around: int, base: int, program: ProtoProgram, work: Work, to: int) -> int:
    """Write what a message begins with, or all of one that has no fields in JSON."""
    style = program.types[around].style
    if style == ProtoStyle.MESSAGE:
        return put_literal(program.literals, Literal.MAP, 1, work.text, to)
    if style == ProtoStyle.OTHER:
        return REFUSED
    if style < ProtoStyle.TIMESTAMP:
        return to
    seconds = _integer(data, base, program, work.seen)
    nanos = _integer(data, base + 1, program, work.seen)
    return put_seconds(seconds, nanos, int(style == ProtoStyle.TIMESTAMP), work.text, to)


@device_function
def _integer(data: U8, number: int, program: ProtoProgram, seen: Rows[SeenField]) -> int:
    """Return the number of a field that was found; 0 without one."""
    start = seen[number].start
    if start < 0:
        return 0
    _, at = varint_at(data, start, seen[number].end)
    bits, _ = varint_at(data, at, seen[number].end)
    return integer_of(program.fields[seen[number].place].kind, bits)


@device_function
def _closed(style: int, is_empty: int, literals: U8, text: TextOutput, to: int) -> int:
    """Write what a message ends with."""
    if style == ProtoStyle.MESSAGE:
        return put_literal(literals, Literal.MAP + 1, 1, text, to)
    if style == ProtoStyle.VALUE and is_empty:
        return put_literal(literals, Literal.NULL, _NULL_BYTES, text, to)
    return to


@device_function
def _put_field(
    data: U8, at: int, end: int, place: int, program: ProtoProgram, text: TextOutput, to: int
) -> tuple[int, int]:
    """Write what is behind a key, if it is no message; return both ends."""
    field = program.fields[place]
    op = field.op
    behind = -1
    if op in (ProtoOp.PACKED_VARINTS, ProtoOp.PACKED_FIXED):
        size, at = varint_at(data, at, end)
        behind = at + size
        op = ProtoOp.VARINT if op == ProtoOp.PACKED_VARINTS else ProtoOp.FIXED
        if size == 0:
            return to, at
    is_bytes = op in (ProtoOp.BYTES, ProtoOp.TEXT)
    going = 1
    while going:
        bits, at = read_field(data, at, end, op, field.size)
        if field.is_list:
            to = put_comma(text, to)
        if field.is_quoted:
            to = put_literal(program.literals, Literal.QUOTE, 1, text, to)
        if field.how == Put.NULL:
            to = put_literal(program.literals, Literal.NULL, _NULL_BYTES, text, to)
        elif field.how == Put.NAME:
            number = integer_of(field.kind, bits)
            to = _put_name(number, field.first_name, field.names, program, text, to)
        else:
            begin = at - bits if is_bytes else at
            to = put(data, begin, at, integer_of(field.kind, bits), field.how, 0, text, to)
        if field.is_quoted:
            to = put_literal(program.literals, Literal.QUOTE, 1, text, to)
        going = 1 if 0 <= at < behind else 0
    return to, at


@device_function
def _put_name(
    number: int, first: int, count: int, program: ProtoProgram, text: TextOutput, to: int
) -> int:
    """Write the name that a number has in an enum, or the number."""
    last = first + count - 1
    while first <= last:
        middle = (first + last) >> 1
        name = program.names[middle]
        if name.number == number:
            return put_literal(program.literals, name.start, name.size, text, to)
        if name.number < number:
            first = middle + 1
        else:
            last = middle - 1
    return put(text.out, 0, 0, number, Put.INTEGER, 0, text, to)
