"""The kernel that finds a field of Avro values by the programs of `avro_programs`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from dissector.kernel import Kernel, device_function
from dissector.kernel.arrays import I64, U8, Buffers
from dissector.kernel.named_rows import NamedRow, Rows
from dissector.kernel.utf8 import is_utf8
from dissector.values.avro.avro_types import ITEM_OUTPUT
from dissector.values.steps.field_arrays import DEPTH, Form, FoundFields, Frame, ValueRows
from dissector.values.steps.varint_kernels import (
    is_finite,
    little_endian_at,
    output_room,
    zigzag_at,
)


class AvroOp:
    """Operations of steps."""

    # Types of one value.
    NULL, BOOLEAN, LONG, DOUBLE, BYTES, TEXT, FIXED, ENUM = 0, 1, 2, 3, 4, 5, 6, 7
    # A record begins; one of several branches; the end of a branch.
    RECORD, UNION, GO = 8, 9, 10
    # The items of an array or a map begin; the end of an item.
    BLOCKS, NEXT = 11, 12
    # A type inside itself; its end.
    CALL, RETURN = 13, 14
    # The field begins; its end.
    WANTED, FOUND = 15, 16
    END = 17


@dataclass(slots=True)
class AvroStep(NamedRow):
    """
    A step of a program.

    Attributes:
        op: Its operation, of `AvroOp`.
        size: Bytes of FIXED; output that RECORD and ENUM take; whether FOUND has a number of its
            own (1 or 0).
        count: Symbols of ENUM; branches of UNION.
        to: The first branch of UNION, in `branches`; the place of FOUND; of other steps the step
            that follows.
    """

    op: int
    size: int = 0
    count: int = 0
    to: int = 0


class AvroProgram(NamedTuple):
    """
    The steps of a schema.

    Attributes:
        steps: From the first on.
        branches: The steps of branches.
    """

    steps: Rows[AvroStep]
    branches: I64


@Kernel
def find_avro_fields(
    rows: ValueRows,
    buffers: Buffers,
    lead: U8,
    program: AvroProgram,
    frames: Rows[Frame],
    found: FoundFields,
) -> None:
    """
    Find a field in each of some values.

    Args:
        rows: The values.
        buffers: The bytes that they refer to.
        lead: The bytes before each value; those with others are of another schema.
        program: What to do.
        frames: `DEPTH` frames.
        found: Receives the fields.
    """
    second = len(buffers.data)
    third = second + len(buffers.carry_over)
    for row in range(len(rows.start)):
        start = rows.start[row]
        if start < 0:
            found.form[row] = Form.ABSENT
            continue
        source = buffers.data
        base = 0
        if start >= third:
            source = buffers.arena
            base = third
        elif start >= second:
            source = buffers.carry_over
            base = second
        start -= base
        end = start + rows.length[row]
        form = _find(source, start, end, row, lead, program, frames, found)
        found.form[row] = form
        if form == Form.PLACED:
            found.number[row] += base


@device_function
def _find(
    data: U8,
    at: int,
    end: int,
    row: int,
    lead: U8,
    program: AvroProgram,
    frames: Rows[Frame],
    found: FoundFields,
) -> int:
    """Find the field of a row, and return its form."""
    left = output_room(end - at)
    if end - at < len(lead):
        return Form.OTHER
    for i in range(len(lead)):
        if data[at + i] != lead[i]:
            return Form.OTHER
    at += len(lead)
    result = Form.ABSENT
    form = Form.NULL
    number = 0
    begin = at
    depth = 0
    step = 0
    while at >= 0:
        now = program.steps[step]
        op = now.op
        step += 1
        if op == AvroOp.LONG:
            number, at = zigzag_at(data, at, end)
            form = Form.INTEGER
        elif op in (AvroOp.TEXT, AvroOp.BYTES):
            size, at = zigzag_at(data, at, end)
            if at < 0 or size < 0 or size > end - at:
                return Form.REFUSED
            if op == AvroOp.TEXT and is_utf8(data, at, at + size) == 0:
                return Form.REFUSED
            at += size
        elif op == AvroOp.DOUBLE:
            if end - at < 8:
                return Form.REFUSED
            number = little_endian_at(data, at, 8)
            form = Form.DOUBLE if is_finite(number) else Form.PLACED
            at += 8
        elif op == AvroOp.FIXED:
            if now.size > end - at:
                return Form.REFUSED
            at += now.size
        elif op == AvroOp.BOOLEAN:
            if at >= end or data[at] > 1:
                return Form.REFUSED
            number = data[at]
            form = Form.BOOLEAN
            at += 1
        elif op == AvroOp.NULL:
            form = Form.NULL
        elif op in (AvroOp.UNION, AvroOp.ENUM):
            index, at = zigzag_at(data, at, end)
            if at < 0 or index < 0 or index >= now.count:
                return Form.REFUSED
            if op == AvroOp.UNION:
                step = program.branches[now.to + index]
            else:
                left -= now.size
        elif op == AvroOp.RECORD:
            left -= now.size
        elif op == AvroOp.GO:
            step = now.to
        elif op in (AvroOp.BLOCKS, AvroOp.CALL):
            if depth == DEPTH:
                return Form.REFUSED
            frames[depth].step = step
            frames[depth].left = 1
            depth += 1
            step = now.to
        elif op == AvroOp.NEXT:
            block = frames[depth - 1]
            block.left -= 1
            if block.left == 0:
                count, at = zigzag_at(data, at, end)
                if at >= 0 and count < 0:
                    count = -count
                    size, at = zigzag_at(data, at, end)
                # Items of no bytes would be work without input: one byte for each is asked for.
                if at < 0 or count < 0 or count > end - at:
                    return Form.REFUSED
                left -= ITEM_OUTPUT * count
                block.left = count
            if block.left > 0:
                step = block.step
            else:
                depth -= 1
        elif op == AvroOp.RETURN:
            depth -= 1
            step = frames[depth].step
        elif op == AvroOp.WANTED:
            begin = at
        elif op == AvroOp.FOUND:
            result = form if now.size else Form.PLACED
            if result == Form.PLACED:
                number = begin
                found.size[row] = at - begin
            found.number[row] = number
            found.place[row] = now.to
        else:
            return result if at == end else Form.REFUSED
        if left < 0:
            return Form.REFUSED
    return Form.REFUSED
