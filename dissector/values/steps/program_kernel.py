"""The kernel that runs a program for many values, whatever their format."""

from __future__ import annotations

from typing import NamedTuple

from dissector.kernel import Kernel, device_function
from dissector.kernel.arrays import U8, Buffers
from dissector.values.steps.avro_kernel import AvroProgram, run_avro
from dissector.values.steps.field_arrays import Form, ValueRows, Work
from dissector.values.steps.proto_kernel import ProtoProgram, find_proto
from dissector.values.steps.proto_text_kernel import write_proto


class Program(NamedTuple):
    """A program of one format; that of the other is empty."""

    avro: AvroProgram
    proto: ProtoProgram


@Kernel
def run_program(rows: ValueRows, buffers: Buffers, program: Program, work: Work) -> None:
    """
    Run a program for some values, until the output is full.

    Args:
        rows: The values.
        buffers: The bytes that they refer to.
        program: What to do.
        work: What it uses, and gives.
    """
    second = len(buffers.data)
    third = second + len(buffers.carry_over)
    found = work.found
    row = work.text.use[0].row
    form = Form.ABSENT
    while row < len(rows.start) and form != Form.FULL:
        start = rows.start[row]
        end = start + rows.length[row]
        if start >= third:
            form = _run(buffers.arena, start - third, end - third, row, program, work)
        elif start >= second:
            form = _run(buffers.carry_over, start - second, end - second, row, program, work)
        elif start >= 0:
            form = _run(buffers.data, start, end, row, program, work)
        else:
            form = Form.ABSENT
        if form == Form.PLACED:
            found.number[row] += third if start >= third else second if start >= second else 0
        found.form[row] = form
        row += 1
    work.text.use[0].row = row - 1 if form == Form.FULL else row


@device_function
def _run(data: U8, at: int, end: int, row: int, program: Program, work: Work) -> int:
    size = len(work.lead)
    if end - at < size:
        return Form.OTHER
    for i in range(size):
        if data[at + i] != work.lead[i]:
            return Form.OTHER
    if len(program.avro.steps):
        return run_avro(data, at + size, end, row, program.avro, work)
    if len(program.proto.slots):
        return write_proto(data, at + size, end, row, program.proto, work)
    return find_proto(data, at + size, end, row, program.proto, work)
