"""Runs the programs of `avro_programs`: they find a field of an Avro value, or write its text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from dissector.kernel import device_function
from dissector.kernel.arrays import I64, U8
from dissector.kernel.named_rows import NamedRow, Rows
from dissector.kernel.utf8 import is_utf8
from dissector.values.avro.avro_types import ITEM_OUTPUT
from dissector.values.steps.field_arrays import DEPTH, Form, Work
from dissector.values.steps.value_texts import FULL, Put, is_new_key, put, put_comma, put_literal
from dissector.values.steps.varint_kernels import (
    double_of_float,
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
    END, FLOAT = 17, 18
    # What is written: bytes of the program; what was read last; a symbol; a key of a map; a comma
    # before all items but the first. What only the decoder can.
    LITERAL, PUT, SYMBOL, KEY, COMMA, OTHER = 19, 20, 21, 22, 23, 24


@dataclass(slots=True)
class AvroStep(NamedRow):
    """
    A step of a program.

    Attributes:
        op: Its operation, of `AvroOp`.
        size: Bytes of FIXED and LITERAL; output that RECORD and ENUM take; whether FOUND has a
            number of its own (1 or 0); how PUT writes, of `Put`.
        count: Symbols of ENUM; branches of UNION; the scale of PUT.
        to: The first branch of UNION, or the first text of SYMBOL, in `branches`; the begin of
            LITERAL; the place of FOUND; of other steps the step that follows.
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
        branches: The steps of branches, and the begins of symbols in the literals.
        literals: What is written.
    """

    steps: Rows[AvroStep]
    branches: I64
    literals: U8


@device_function
def run_avro(data: U8, at: int, end: int, row: int, program: AvroProgram, work: Work) -> int:
    """Run the program for a value behind its lead, and return the form of what it found."""
    frames = work.frames
    found = work.found
    text = work.text
    room = output_room(end - at + len(work.lead))
    left = room
    text_begin = text.use[0].bytes
    to = text_begin
    known = 0
    result = Form.ABSENT
    form = Form.NULL
    number = 0
    begin = at
    content = at
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
            content = at
            at += size
        elif op == AvroOp.LITERAL:
            to = put_literal(program.literals, now.to, now.size, text, to)
        elif op == AvroOp.PUT:
            to = put(data, content, at, number, now.size, now.count, text, to)
        elif op == AvroOp.DOUBLE:
            if end - at < 8:
                return Form.REFUSED
            number = little_endian_at(data, at, 8)
            form = Form.DOUBLE if is_finite(number) else Form.PLACED
            at += 8
        elif op == AvroOp.FLOAT:
            if end - at < 4:
                return Form.REFUSED
            number = double_of_float(little_endian_at(data, at, 4))
            form = Form.DOUBLE if is_finite(number) else Form.PLACED
            at += 4
        elif op == AvroOp.FIXED:
            if now.size > end - at:
                return Form.REFUSED
            content = at
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
                number = index
        elif op == AvroOp.RECORD:
            left -= now.size
        elif op == AvroOp.GO:
            step = now.to
        elif op in (AvroOp.BLOCKS, AvroOp.CALL):
            if depth == DEPTH:
                return Form.REFUSED
            frames[depth].step = step
            frames[depth].left = 1
            frames[depth].keys = known
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
                known = block.keys
        elif op == AvroOp.RETURN:
            depth -= 1
            step = frames[depth].step
        elif op == AvroOp.COMMA:
            to = put_comma(text, to)
        elif op == AvroOp.KEY:
            key = to
            to = put(data, content, at, 0, Put.TEXT, 0, text, to)
            if to >= 0 and is_new_key(text, frames[depth - 1].keys, known, key, to) == 0:
                return Form.REFUSED
            known += 1
        elif op == AvroOp.SYMBOL:
            start = program.branches[now.to + number]
            size = program.branches[now.to + number + 1] - start
            to = put_literal(program.literals, start, size, text, to)
        elif op == AvroOp.OTHER:
            return Form.REFUSED
        elif op == AvroOp.WANTED:
            begin = at
        elif op == AvroOp.FOUND:
            result = form if now.size else Form.PLACED
            if result == Form.PLACED:
                number = begin
                found.size[row] = at - begin
            found.number[row] = number
            found.place[row] = now.to
        elif at != end or to - text_begin > room:
            return Form.REFUSED
        elif to > text_begin:
            found.number[row] = text_begin
            found.size[row] = to - text_begin
            text.use[0].bytes = to
            return Form.WRITTEN
        else:
            return result
        if to < 0:
            return Form.FULL if to == FULL else Form.REFUSED
        if left < 0:
            return Form.REFUSED
    return Form.REFUSED
