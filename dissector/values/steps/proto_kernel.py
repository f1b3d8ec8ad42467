"""Runs the programs of `proto_programs`, which find a field of a Protobuf value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from dissector.kernel import device_function
from dissector.kernel.arrays import U8
from dissector.kernel.named_rows import NamedRow, Rows
from dissector.kernel.utf8 import is_utf8
from dissector.values.steps.field_arrays import DEPTH, Form, Work
from dissector.values.steps.varint_kernels import (
    is_finite,
    little_endian_at,
    output_room,
    varint_at,
)


class ProtoOp:
    """What a field has behind its key."""

    # A number of variable size; one of a fixed size; lists of these.
    VARINT, FIXED, PACKED_VARINTS, PACKED_FIXED = 0, 1, 2, 3
    # A size and as many bytes: any; a text; a message.
    BYTES, TEXT, MESSAGE = 4, 5, 6
    # What is left to the decoder.
    OTHER = 7


class NumberKind:
    """How 64 bits are the number of a field."""

    # They are no number of the kernel's own.
    PLACED = 0
    INT64, UINT64, SINT64, INT32, UINT32, SINT32, BOOLEAN, DOUBLE = 1, 2, 3, 4, 5, 6, 7, 8


@dataclass(slots=True)
class ProtoField(NamedRow):
    """
    A field by its key on the wire.

    Attributes:
        key: Number and wire type.
        op: Of `ProtoOp`.
        size: Bytes of a number of fixed size.
        output: What it, or an item of its list, takes of the output at most, besides a message.
        message: Of MESSAGE, the type of the message.
        is_wanted: Whether it is the field that is looked for (1 or 0).
        is_other: Whether it takes the place of what is looked for, in a oneof (1 or 0).
        kind: Of the field that is looked for, or of all where texts are written, its `NumberKind`.
        slot: Its place among the declared fields of the message.
        oneof: Where it is noted which field its oneof has, behind the slots; 0 without one.
        is_list: Whether it is a list or a map (1 or 0).
        is_quoted: Whether it is a key of a map that is no text (1 or 0).
        how: How it is written, of `Put`.
        first_name: Its first name, if it has an enum.
        names: Number of names.
    """

    key: int
    op: int
    size: int = 0
    output: int = 0
    message: int = 0
    is_wanted: int = 0
    is_other: int = 0
    kind: int = 0
    slot: int = 0
    oneof: int = 0
    is_list: int = 0
    is_quoted: int = 0
    how: int = 0
    first_name: int = 0
    names: int = 0


@dataclass(slots=True)
class ProtoType(NamedRow):
    """
    A type of messages.

    Attributes:
        first: Its first field.
        count: Its fields.
        output: What a message takes of the output.
        default: The form of the field that is looked for, as long as a message of this type lacks
            it: ABSENT outside of its own type.
        first_slot: The first of its fields as they are declared.
        slots: Number of these.
        seen: Number of these, and of its oneofs.
        style: Its form in JSON, of `ProtoStyle`.
    """

    first: int
    count: int
    output: int
    default: int
    first_slot: int = 0
    slots: int = 0
    seen: int = 0
    style: int = 0


class ProtoStyle:
    """The form of messages in JSON."""

    # An object; an entry of a map; what is in its only field; the same, or null.
    MESSAGE, ENTRY, BARE, VALUE = 0, 1, 2, 3
    # A text of seconds and nanoseconds; what only the decoder can.
    TIMESTAMP, DURATION, OTHER = 4, 5, 6


@dataclass(slots=True)
class ProtoSlot(NamedRow):
    """
    A field of a message as it is written: places in the literals.

    Attributes:
        name: Its name, behind a comma.
        name_size: Its bytes.
        default: What it is if it is not set.
        default_size: Its bytes; 0: it is left out.
        brackets: Those of a list or a map; 0 for others.
    """

    name: int
    name_size: int
    default: int
    default_size: int
    brackets: int


@dataclass(slots=True)
class ProtoName(NamedRow):
    """A name of an enum: its number, and where it is in the literals."""

    number: int
    start: int
    size: int


class ProtoProgram(NamedTuple):
    """
    The messages of a schema.

    Attributes:
        types: The first is that of values.
        fields: Of each type by their keys, in order.
        slots: Of each type as they are declared; none: a field is looked for.
        names: Of each enum by their numbers, in order.
        literals: What is written.
    """

    types: Rows[ProtoType]
    fields: Rows[ProtoField]
    slots: Rows[ProtoSlot]
    names: Rows[ProtoName]
    literals: U8


UNKNOWN_OUTPUT = 16
"""Output of a field that is not declared, as `skip_unknown` has it."""

MAX_INT64 = 2**63 - 1


@device_function
def find_proto(data: U8, at: int, end: int, row: int, program: ProtoProgram, work: Work) -> int:
    """Find the field of a value behind its lead, and return its form."""
    frames = work.frames
    found = work.found
    left = output_room(end - at) - program.types[0].output
    form = program.types[0].default
    number = 0
    begin = at
    size = 0
    around = 0
    place = program.types[0].first
    depth = 0
    while left >= 0:
        while at == end and depth > 0:
            depth -= 1
            around = frames[depth].left
            place = frames[depth].step
            end = frames[depth].end
        if at == end:
            found.number[row] = begin if form == Form.PLACED else number
            found.size[row] = size
            return form
        key_at = at
        key, at = varint_at(data, at, end)
        if at < 0:
            return Form.REFUSED
        place = field_of(program, around, key, place)
        if place < 0:
            place = program.types[around].first
            left -= UNKNOWN_OUTPUT
            at = _skip(data, key, at, end)
            if at < 0:
                return Form.REFUSED
            continue
        field = program.fields[place]
        bits, behind = read_field(data, at, end, field.op, field.size)
        if behind < 0:
            return Form.REFUSED
        left -= field.output * (bits if field.op == ProtoOp.PACKED_VARINTS else 1)
        is_message = field.op == ProtoOp.MESSAGE
        if field.is_other:
            form = Form.ABSENT
        elif field.is_wanted:
            if is_message and form == Form.PLACED:
                return Form.REFUSED  # its pieces count together
            form, number = _number_of(field.kind, bits)
            if form == Form.REFUSED:
                return Form.REFUSED
            begin = key_at
            size = behind - key_at
        at = behind
        if is_message:
            if depth == DEPTH:
                return Form.REFUSED
            frames[depth].left = around
            frames[depth].step = place
            frames[depth].end = end
            depth += 1
            end = behind
            at = behind - bits
            around = field.message
            left -= program.types[around].output
            place = program.types[around].first
            if form == Form.ABSENT:
                form = program.types[around].default
                number = 0
                begin = at
                size = 0
    return Form.REFUSED


@device_function
def field_of(program: ProtoProgram, message: int, key: int, place: int) -> int:
    """Return the field of a key in a type of messages, at or soon behind a place; -1: none."""
    first = program.types[message].first
    last = first + program.types[message].count - 1
    for i in range(place, min(place + 2, last + 1)):
        if program.fields[i].key == key:
            return i
    while first <= last:
        middle = (first + last) >> 1
        other = program.fields[middle].key
        if other == key:
            return middle
        if other < key:
            first = middle + 1
        else:
            last = middle - 1
    return -1


@device_function
def read_field(data: U8, at: int, end: int, op: int, size: int) -> tuple[int, int]:
    """Read what is behind a key: a number, or the size of bytes; the position behind it, or -1."""
    if op == ProtoOp.VARINT:
        return varint_at(data, at, end)
    if op == ProtoOp.OTHER:
        return 0, -1
    if op == ProtoOp.FIXED:
        return (little_endian_at(data, at, size), at + size) if size <= end - at else (0, -1)
    length, at = varint_at(data, at, end)
    if at < 0 or length < 0 or length > end - at:
        return 0, -1
    if op == ProtoOp.TEXT and is_utf8(data, at, at + length) == 0:
        return 0, -1
    if op == ProtoOp.PACKED_FIXED and length % size != 0:
        return 0, -1
    behind = at + length
    if op == ProtoOp.PACKED_VARINTS:
        while 0 <= at < behind:
            _, at = varint_at(data, at, behind)
        return (length, behind) if at >= 0 else (0, -1)
    return length, behind


@device_function
def _skip(data: U8, key: int, at: int, end: int) -> int:
    """Return the position behind a field that is not declared; -1 for groups and for no field."""
    wire = key & 7
    if key < 8:
        return -1
    if wire == 0:
        _, at = varint_at(data, at, end)
        return at
    size = 8 if wire == 1 else 4
    if wire == 2:
        size, at = varint_at(data, at, end)
    elif wire not in (1, 5):
        return -1
    return at + size if at >= 0 and 0 <= size <= end - at else -1


@device_function
def _number_of(kind: int, bits: int) -> tuple[int, int]:
    """Return the form of a field that is looked for, and its number."""
    if kind == NumberKind.PLACED:
        return Form.PLACED, 0
    if kind == NumberKind.DOUBLE:
        return (Form.DOUBLE if is_finite(bits) else Form.PLACED), bits
    if kind == NumberKind.BOOLEAN:
        return Form.BOOLEAN, integer_of(kind, bits)
    if kind == NumberKind.UINT64 and bits < 0:
        return Form.REFUSED, 0  # more than 63 bits
    return Form.INTEGER, integer_of(kind, bits)


@device_function
def integer_of(kind: int, bits: int) -> int:
    """Return the number of a field as 64 bits."""
    if kind == NumberKind.BOOLEAN:
        return 1 if bits != 0 else 0
    if kind in (NumberKind.UINT32, NumberKind.SINT32):
        bits &= 0xFFFFFFFF
    if kind in (NumberKind.SINT32, NumberKind.SINT64):
        return (bits >> 1 & MAX_INT64) ^ -(bits & 1)
    if kind == NumberKind.INT32:
        bits = ((bits & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000
    return bits
