"""
The tape: every field of many messages at once, in columns.

One loop runs the programs of `dissector.protocol.program` over the bytes of all messages and writes
a row for each field that is wanted: which message, which field, where its content lies, and its
value. It checks each count and length against the bytes left, as the codecs do, and agrees with
them on every message that it reads to the end. What it can't read it leaves to them: a message that
does not fit stops with its place, and no other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dissector.kernel import Kernel, part
from dissector.protocol.program import (
    ARRAY_COMPACT,
    BYTES16,
    BYTES_COMPACT,
    END,
    FIXED,
    NEXT,
    NULLABLE,
    NUMBER,
    TAGS,
    UNKNOWN_TAG,
    Programs,
)

Ints: TypeAlias = NDArray[np.int64]

NULL = -1

MAX_VARINT = 0xFFFFFFFF

FITS, LEFT_OVER, BROKEN, UNKNOWN = range(4)
"""What became of a message: read to its last byte; bytes left over; broken; no program for it."""

DEPTH = 24
"""Arrays and tag sections inside one another; declarations have nine at most."""

_MESSAGE, _FIELD, _START, _VALUE = range(4)
COLUMNS = 4


@dataclass(slots=True)
class Tape:
    """
    The wanted fields of some messages, a row each, in wire order.

    Attributes:
        message: Number of the message.
        field: Number of the field, as in `Programs.places`.
        start: Where its content lies in the data: of texts and bytes behind the length.
        value: The number; of texts, bytes and uuids the length of the content; of arrays the count;
            NULL where it is null.
        state: Of each message: FITS, LEFT_OVER, BROKEN or UNKNOWN.
        end: Of each message: where reading stopped.
    """

    message: Ints
    field: Ints
    start: Ints
    value: Ints
    state: NDArray[np.int64]
    end: Ints

    def __len__(self) -> int:
        return len(self.message)


def read(
    data: NDArray[np.uint8],
    starts: Ints,
    ends: Ints,
    steps: Ints,
    programs: Programs,
    wanted: NDArray[np.uint8],
) -> Tape:
    """
    Run messages through their programs.

    Args:
        data: The bytes of all messages.
        starts: Where each begins, its header first.
        ends: Where each ends.
        steps: The first step of each one's program; negative where there is none.
        programs: The programs.
        wanted: For each field number whether it is wanted; what lies beyond is not.
    """
    count = len(starts)
    code = np.array(programs.code, np.int64).reshape(-1, 4)
    tags = np.array(programs.tags or [(0, 0)], np.int64)
    state = np.full(count, UNKNOWN, np.int64)
    stopped = np.array(starts, np.int64)
    chosen = np.zeros(len(programs.places), np.uint8)
    chosen[: min(len(wanted), len(chosen))] = wanted[: len(chosen)]
    work = int((ends - starts).sum()) // 4 + count
    parts: list[NDArray[np.int64]] = []
    stack = np.zeros((DEPTH, 4), np.int64)
    done = np.zeros(2, np.int64)
    room = max(1024, work)
    while int(done[0]) < count:
        out = np.empty((room, COLUMNS), np.int64)
        _run(
            data,
            starts,
            ends,
            steps,
            code,
            tags,
            chosen,
            stack,
            state,
            stopped,
            out,
            done,
            work=work,
        )
        parts.append(out[: int(done[1])])
        # A message that finds too little room begins anew in the next piece, with more.
        room = room * 2 if not done[1] else room
    rows = np.concatenate(parts) if parts else np.empty((0, COLUMNS), np.int64)
    message, number, start, value = np.ascontiguousarray(rows.T)
    return Tape(message, number, start, value, state, stopped)


@part
def _varint(data: Any, at: int, end: int) -> tuple[int, int]:
    """Read an unsigned varint of 32 bits; the second number is where it ends, -1 if it is none."""
    value = 0
    shift = 0
    while shift <= 28 and at < end:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at if value <= MAX_VARINT else -1
    return 0, -1


@part
def _number(data: Any, at: int, size: int, signed: int) -> int:
    """Read a big-endian number whose bytes are all there."""
    value = 0
    if signed and data[at] >= 128:
        for i in range(size):
            value = value << 8 | (255 - data[at + i])
        return -value - 1
    for i in range(size):
        value = value << 8 | data[at + i]
    return value


@part
def _length(data: Any, at: int, end: int, op: int) -> tuple[int, int]:
    """Read the length or count of a step; the second number is where it ends, -1 if it is none."""
    if op in (BYTES_COMPACT, ARRAY_COMPACT):
        length, at = _varint(data, at, end)
        return length - 1, at
    size = 2 if op == BYTES16 else 4
    if end - at < size:
        return 0, -1
    return _number(data, at, size, 1), at + size


@part
def _write(out: Any, row: int, message: int, field: int, at: int, value: int) -> int:
    """Write a row; return the next one, -1 if there is no room."""
    if row >= len(out):
        return -1
    out[row, 0] = message
    out[row, 1] = field
    out[row, 2] = at
    out[row, 3] = value
    return row + 1


@part
def _find_tag(tags: Any, first: int, count: int, tag: int) -> int:
    """Return the step of a known tag of a section, -1 for an unknown one."""
    for known in range(first, first + count):
        if tags[known, 0] == tag:
            return int(tags[known, 1])
    return -1


@part
def _read_message(
    data: Any,
    at: int,
    end: int,
    step: int,
    message: int,
    code: Any,
    tags: Any,
    wanted: Any,
    stack: Any,
    out: Any,
    row: int,
) -> tuple[int, int, int]:
    """
    Run one message through its program.

    Returns:
        What became of it, where it ended, and the next row; the row is -1 where `out` is full.
    """
    depth = 0
    while True:
        op = code[step, 0]
        field = code[step, 3]
        if op == NUMBER:
            size = code[step, 1]
            if end - at < size:
                return BROKEN, at, row
            if wanted[field]:
                value = _number(data, at, size, code[step, 2])
                row = _write(out, row, message, field, at, value)
            at += size
            step += 1
        elif op <= BYTES_COMPACT:
            length = code[step, 1]
            if op != FIXED:
                length, at = _length(data, at, end, op)
            if at < 0 or length < NULL or length > end - at:
                return BROKEN, at, row
            if wanted[field]:
                row = _write(out, row, message, field, at, length)
            at += max(length, 0)
            step += 1
        elif op <= ARRAY_COMPACT:
            length, at = _length(data, at, end, op)
            if at < 0 or length < NULL or length * code[step, 2] > end - at:
                return BROKEN, at, row
            if wanted[field]:
                row = _write(out, row, message, field, at, length)
            if length > 0:
                stack[depth, 0] = step + 1
                stack[depth, 1] = length
                stack[depth, 2] = code[step, 1]
                depth += 1
                step += 1
            else:
                step = code[step, 1]
        elif op == NEXT:
            stack[depth - 1, 1] -= 1
            if stack[depth - 1, 1] > 0:
                step = stack[depth - 1, 0]
            else:
                depth -= 1
                step = stack[depth, 2]
        elif op == NULLABLE:
            if at >= end:
                return BROKEN, at, row
            null = data[at] >= 128
            if null and wanted[field]:
                row = _write(out, row, message, field, at, NULL)
            at += 1
            step = code[step, 1] if null else step + 1
        elif op == END:
            return FITS if at == end else LEFT_OVER, at, row
        else:
            if op == TAGS:
                section = step
                last = -1
                left, at = _varint(data, at, end)
                if at < 0 or left * 2 > end - at:
                    return BROKEN, at, row
            else:
                depth -= 1
                if at != stack[depth, 0]:
                    return BROKEN, at, row
                left = stack[depth, 1]
                last = stack[depth, 2]
                section = code[step, 1]
            # Pass over unknown tags, up to the next known one or the end of the section.
            step = code[section, 3]
            while left > 0:
                tag, at = _varint(data, at, end)
                size, at = _varint(data, at, end) if at >= 0 else (0, -1)
                # Tags out of order are left to the codec: one may be there twice.
                if at < 0 or tag <= last or size > end - at:
                    return BROKEN, at, row
                last = tag
                left -= 1
                inside = _find_tag(tags, code[section, 1], code[section, 2], tag)
                if inside >= 0:
                    stack[depth, 0] = at + size
                    stack[depth, 1] = left
                    stack[depth, 2] = last
                    depth += 1
                    step = inside
                    break
                if wanted[UNKNOWN_TAG]:
                    row = _write(out, row, message, UNKNOWN_TAG, at, size)
                    if row < 0:
                        return BROKEN, at, row
                at += size
        if row < 0:
            return BROKEN, at, row


@Kernel
def _run(
    data: Any,
    starts: Any,
    ends: Any,
    steps: Any,
    code: Any,
    tags: Any,
    wanted: Any,
    stack: Any,
    state: Any,
    stopped: Any,
    out: Any,
    done: Any,
) -> None:
    """Read messages from `done[0]` on until `out` is full; `done[1]` is how many rows it has."""
    row = 0
    message = done[0]
    while message < len(starts):
        step = steps[message]
        if step >= 0:
            begin, end = starts[message], ends[message]
            result, at, next_row = _read_message(
                data, begin, end, step, message, code, tags, wanted, stack, out, row
            )
            if next_row < 0:
                break  # it is read again from its beginning, with more room
            state[message] = result
            stopped[message] = at if at >= 0 else begin
            if result != BROKEN:
                row = next_row
        message += 1
    done[0] = message
    done[1] = row
