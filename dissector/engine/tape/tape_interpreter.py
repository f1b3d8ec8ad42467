"""The kernel that runs the programs of messages and writes the rows of the tape; see `tape`."""

from __future__ import annotations

from dissector.engine.tape.primitive_kernels import find_tag, length_at, number_at, varint_at
from dissector.engine.tape.tape_arrays import MessageArrays, ProgramArrays, Progress, TapeRows
from dissector.kernel import Kernel, device_function
from dissector.kernel.arrays import U8
from dissector.protocol.program import UNKNOWN_TAG, Op

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
        Its state; where it ended, or where what does not fit begins; and the next row, which is -1
        where the columns are full.
    """
    wanted, arrays, sections = program.wanted, program.arrays, program.sections
    open_arrays = 0
    open_sections = 0
    item = 0
    around = NO_ITEM
    last_item = 0
    while True:
        now = program.code[step]
        op, field = now.op, now.field
        if op == Op.NUMBER:
            if end - at < now.size:
                return BROKEN, at, row
            if wanted[field]:
                value = number_at(data, at, now.size, now.is_signed)
                row = _write(rows, row, field, item, around, base + at, value)
            at += now.size
            step += 1
        elif op <= Op.BYTES_COMPACT:
            length = now.size
            begin = at
            if op != Op.FIXED:
                length, at = length_at(data, at, end, op)
            if at < 0 or length < NULL or length > end - at:
                return BROKEN, begin, row
            if wanted[field]:
                row = _write(rows, row, field, item, around, base + at, length)
            at += max(length, 0)
            step += 1
        elif op <= Op.ARRAY_COMPACT:
            begin = at
            length, at = length_at(data, at, end, op)
            if at < 0 or length < NULL or length * now.size > end - at:
                return BROKEN, begin, row
            if wanted[field]:
                row = _write(rows, row, field, item, around, base + at, length)
            if length > 0:
                step += 1
                array = arrays[open_arrays]
                array.step = step
                array.left = length
                array.behind = now.behind
                array.item = item
                array.around = around
                open_arrays += 1
                last_item += 1
                around = item
                item = last_item
            else:
                step = now.behind
        elif op == Op.NEXT:
            array = arrays[open_arrays - 1]
            array.left -= 1
            if array.left > 0:
                step = array.step
                last_item += 1
                item = last_item
            else:
                open_arrays -= 1
                step = array.behind
                item = array.item
                around = array.around
        elif op == Op.NULLABLE:
            if at >= end:
                return BROKEN, at, row
            null = data[at] >= 128
            if null and wanted[field]:
                row = _write(rows, row, field, item, around, base + at, NULL)
            at += 1
            step = now.behind if null else step + 1
        elif op == Op.END:
            return FITS if at == end else LEFT_OVER, at, row
        else:
            if op == Op.TAGS:
                section = now
                last = -1
                begin = at
                left, at = varint_at(data, at, end)
                if at < 0 or left * 2 > end - at:
                    return BROKEN, begin, row
            else:
                section = program.code[now.section]
                open_sections -= 1
                opened = sections[open_sections]
                if at != opened.field_end:
                    return BROKEN, min(at, opened.field_end), row
                left = opened.left
                last = opened.last
            # Skip unknown tags, up to the next known one or the end of the section.
            step = section.behind
            while left > 0:
                begin = at
                tag, at = varint_at(data, at, end)
                size, at = varint_at(data, at, end) if at >= 0 else (0, -1)
                # The codec reads tags out of order: one may occur twice.
                if at < 0 or tag <= last or size > end - at:
                    return BROKEN, begin, row
                last = tag
                left -= 1
                inside = find_tag(program.tags, section.first_tag, section.tag_count, tag)
                if inside >= 0:
                    opened = sections[open_sections]
                    opened.field_end = at + size
                    opened.left = left
                    opened.last = last
                    open_sections += 1
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
    done: Progress,
) -> None:
    """Read messages, after those that are done, until the columns are full."""
    row = 0
    message = done.messages
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
            messages.stopped[message] = base + at
            if result != BROKEN:
                for each in range(row, next_row):
                    rows.message[each] = message
                row = next_row
        message += 1
    done.messages = message
    done.rows = row
