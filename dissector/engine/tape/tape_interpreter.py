"""The kernel that runs the programs of messages and writes the rows of the tape; see `tape`."""

from __future__ import annotations

from dissector.engine.tape.primitive_kernels import find_tag, length_at, number_at, varint_at
from dissector.engine.tape.tape_arrays import (
    AROUND,
    BEHIND,
    ITEM,
    LEFT,
    STEP,
    MessageArrays,
    ProgramArrays,
    TapeRows,
)
from dissector.kernel import Kernel, device_function
from dissector.kernel.arrays import I64, U8
from dissector.protocol.program import (
    ARRAY_COMPACT,
    BYTES_COMPACT,
    END,
    FIXED,
    NEXT,
    NULLABLE,
    NUMBER,
    TAGS,
    UNKNOWN_TAG,
)

NULL = -1

FITS, LEFT_OVER, BROKEN, UNKNOWN = range(4)
"""State of a message: read to its last byte; bytes left over; malformed; without a program."""

NO_ITEM = -1
"""The parent of the message itself."""


@device_function
def _write(
    rows: TapeRows, row: int, field: int, item: int, around: int, at: int, value: int
) -> int:
    """Write a row; return the next one, -1 without room."""
    if row >= len(rows.field):
        return -1
    rows.field[row] = field
    rows.item[row] = item
    rows.around[row] = around
    rows.start[row] = at
    rows.value[row] = value
    return row + 1


@device_function
def read_message(
    data: U8,
    at: int,
    end: int,
    base: int,
    step: int,
    program: ProgramArrays,
    rows: TapeRows,
    row: int,
) -> tuple[int, int, int]:
    """
    Run one message through its program, and write its rows, all columns but the first.

    Args:
        data: Bytes.
        at: Begin of the message.
        end: End of the message.
        base: The offset of `data` among all bytes.
        step: The first instruction.
        program: The programs.
        rows: Receives the rows,
        row: from this one on.

    Returns:
        Its state, where it ended, and the next row; the row is -1 where the columns are full.
    """
    code, tags, wanted, stack = program.code, program.tags, program.wanted, program.stack
    depth = 0
    item = 0
    around = NO_ITEM
    last_item = 0
    while True:
        op = code[step, 0]
        field = code[step, 3]
        if op == NUMBER:
            size = code[step, 1]
            if end - at < size:
                return BROKEN, at, row
            if wanted[field]:
                value = number_at(data, at, size, code[step, 2])
                row = _write(rows, row, field, item, around, base + at, value)
            at += size
            step += 1
        elif op <= BYTES_COMPACT:
            length = code[step, 1]
            if op != FIXED:
                length, at = length_at(data, at, end, op)
            if at < 0 or length < NULL or length > end - at:
                return BROKEN, at, row
            if wanted[field]:
                row = _write(rows, row, field, item, around, base + at, length)
            at += max(length, 0)
            step += 1
        elif op <= ARRAY_COMPACT:
            length, at = length_at(data, at, end, op)
            if at < 0 or length < NULL or length * code[step, 2] > end - at:
                return BROKEN, at, row
            if wanted[field]:
                row = _write(rows, row, field, item, around, base + at, length)
            if length > 0:
                stack[depth, STEP] = step + 1
                stack[depth, LEFT] = length
                stack[depth, BEHIND] = code[step, 1]
                stack[depth, ITEM] = item
                stack[depth, AROUND] = around
                depth += 1
                step += 1
                last_item += 1
                around = item
                item = last_item
            else:
                step = code[step, 1]
        elif op == NEXT:
            stack[depth - 1, LEFT] -= 1
            if stack[depth - 1, LEFT] > 0:
                step = stack[depth - 1, STEP]
                last_item += 1
                item = last_item
            else:
                depth -= 1
                step = stack[depth, BEHIND]
                item = stack[depth, ITEM]
                around = stack[depth, AROUND]
        elif op == NULLABLE:
            if at >= end:
                return BROKEN, at, row
            null = data[at] >= 128
            if null and wanted[field]:
                row = _write(rows, row, field, item, around, base + at, NULL)
            at += 1
            step = code[step, 1] if null else step + 1
        elif op == END:
            return FITS if at == end else LEFT_OVER, at, row
        else:
            if op == TAGS:
                section = step
                last = -1
                left, at = varint_at(data, at, end)
                if at < 0 or left * 2 > end - at:
                    return BROKEN, at, row
            else:
                depth -= 1
                if at != stack[depth, 0]:
                    return BROKEN, at, row
                left = stack[depth, 1]
                last = stack[depth, 2]
                section = code[step, 1]
            # Skip unknown tags, up to the next known one or the end of the section.
            step = code[section, 3]
            while left > 0:
                tag, at = varint_at(data, at, end)
                size, at = varint_at(data, at, end) if at >= 0 else (0, -1)
                # The codec reads tags out of order: one may occur twice.
                if at < 0 or tag <= last or size > end - at:
                    return BROKEN, at, row
                last = tag
                left -= 1
                inside = find_tag(tags, code[section, 1], code[section, 2], tag)
                if inside >= 0:
                    stack[depth, 0] = at + size
                    stack[depth, 1] = left
                    stack[depth, 2] = last
                    depth += 1
                    step = inside
                    break
                if wanted[UNKNOWN_TAG]:
                    row = _write(rows, row, UNKNOWN_TAG, item, around, base + at, size)
                    if row < 0:
                        return BROKEN, at, row
                at += size
        if row < 0:
            return BROKEN, at, row


@Kernel
def run(
    data: U8,
    carry_over: U8,
    messages: MessageArrays,
    program: ProgramArrays,
    rows: TapeRows,
    done: I64,
) -> None:
    """Read messages from `done[0]` on until the columns are full, up to row `done[1]`."""
    row = 0
    message = done[0]
    while message < len(messages.start):
        step = messages.step[message]
        if step >= 0:
            begin, end = messages.start[message], messages.end[message]
            source = data
            base = 0
            if begin >= len(data):
                source = carry_over
                base = len(data)
            result, at, next_row = read_message(
                source, begin - base, end - base, base, step, program, rows, row
            )
            if next_row < 0:
                break  # the message is read again, with more room
            messages.state[message] = result
            messages.stopped[message] = base + at if at >= 0 else begin
            if result != BROKEN:
                for each in range(row, next_row):
                    rows.message[each] = message
                row = next_row
        message += 1
    done[0] = message
    done[1] = row
