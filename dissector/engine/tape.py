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

from dissector.kernel import Kernel
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
    room = len(out)
    row = 0
    message = done[0]
    count = len(starts)
    while message < count:
        step = steps[message]
        if step < 0:
            message += 1
            continue
        first_row = row
        at = starts[message]
        end = ends[message]
        depth = 0
        result = BROKEN
        full = False
        while True:
            op = code[step, 0]
            field = code[step, 3]
            if op == NUMBER:
                size = code[step, 1]
                if end - at < size:
                    break
                if wanted[field]:
                    if row >= room:
                        full = True
                        break
                    value = 0
                    for i in range(size):
                        value = value << 8 | data[at + i]
                    if code[step, 2] and data[at] >= 128 and size < 8:
                        value -= 1 << (8 * size)
                    elif code[step, 2] and data[at] >= 128:
                        value = 0
                        for i in range(size):
                            value = value << 8 | (255 - data[at + i])
                        value = -value - 1
                    out[row, 0] = message
                    out[row, 1] = field
                    out[row, 2] = at
                    out[row, 3] = value
                    row += 1
                at += size
                step += 1
            elif op <= BYTES_COMPACT:
                length = 0
                if op == FIXED:
                    length = code[step, 1]
                elif op == BYTES_COMPACT:
                    shift = 0
                    good = False
                    while shift <= 28 and at < end:
                        byte = data[at]
                        at += 1
                        length |= (byte & 127) << shift
                        shift += 7
                        if byte < 128:
                            good = True
                            break
                    if not good or length > 4294967295:
                        break
                    length -= 1
                else:
                    size = 2 if op == BYTES16 else 4
                    if end - at < size:
                        break
                    for i in range(size):
                        length = length << 8 | data[at + i]
                    if data[at] >= 128:
                        length -= 1 << (8 * size)
                    at += size
                if length < -1 or length > end - at:
                    break
                if wanted[field]:
                    if row >= room:
                        full = True
                        break
                    out[row, 0] = message
                    out[row, 1] = field
                    out[row, 2] = at
                    out[row, 3] = length
                    row += 1
                if length > 0:
                    at += length
                step += 1
            elif op <= ARRAY_COMPACT:
                length = 0
                if op == ARRAY_COMPACT:
                    shift = 0
                    good = False
                    while shift <= 28 and at < end:
                        byte = data[at]
                        at += 1
                        length |= (byte & 127) << shift
                        shift += 7
                        if byte < 128:
                            good = True
                            break
                    if not good or length > 4294967295:
                        break
                    length -= 1
                else:
                    if end - at < 4:
                        break
                    for i in range(4):
                        length = length << 8 | data[at + i]
                    if data[at] >= 128:
                        length -= 1 << 32
                    at += 4
                if length < -1 or (length > 0 and length * code[step, 2] > end - at):
                    break
                if wanted[field]:
                    if row >= room:
                        full = True
                        break
                    out[row, 0] = message
                    out[row, 1] = field
                    out[row, 2] = at
                    out[row, 3] = length
                    row += 1
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
                    break
                null = data[at] >= 128
                if null and wanted[field]:
                    if row >= room:
                        full = True
                        break
                    out[row, 0] = message
                    out[row, 1] = field
                    out[row, 2] = at
                    out[row, 3] = NULL
                    row += 1
                at += 1
                step = code[step, 1] if null else step + 1
            elif op == END:
                result = FITS if at == end else LEFT_OVER
                break
            else:
                # A tag section begins (TAGS), or one of its known fields has ended (TAG_END).
                if op == TAGS:
                    left = 0
                    shift = 0
                    good = False
                    while shift <= 28 and at < end:
                        byte = data[at]
                        at += 1
                        left |= (byte & 127) << shift
                        shift += 7
                        if byte < 128:
                            good = True
                            break
                    if not good or left * 2 > end - at:
                        break
                    section = step
                    last = -1
                else:
                    depth -= 1
                    if at != stack[depth, 0]:
                        break
                    left = stack[depth, 1]
                    last = stack[depth, 2]
                    section = code[step, 1]
                # Pass over unknown tags, up to the next known one or the end of the section.
                inside = -1
                broken = False
                while left > 0:
                    tag = 0
                    size = 0
                    for which in range(2):
                        number = 0
                        shift = 0
                        good = False
                        while shift <= 28 and at < end:
                            byte = data[at]
                            at += 1
                            number |= (byte & 127) << shift
                            shift += 7
                            if byte < 128:
                                good = True
                                break
                        if not good or number > 4294967295:
                            broken = True
                            break
                        if which == 0:
                            tag = number
                        else:
                            size = number
                    # Tags out of order are left to the codec: one may be there twice.
                    if broken or tag <= last or size > end - at:
                        broken = True
                        break
                    last = tag
                    left -= 1
                    for known in range(code[section, 2]):
                        if tags[code[section, 1] + known, 0] == tag:
                            inside = tags[code[section, 1] + known, 1]
                    if inside >= 0:
                        stack[depth, 0] = at + size
                        stack[depth, 1] = left
                        stack[depth, 2] = last
                        depth += 1
                        break
                    if wanted[UNKNOWN_TAG]:
                        if row >= room:
                            full = True
                            break
                        out[row, 0] = message
                        out[row, 1] = UNKNOWN_TAG
                        out[row, 2] = at
                        out[row, 3] = size
                        row += 1
                    at += size
                if broken or full:
                    break
                step = inside if inside >= 0 else code[section, 3]
        if full:
            # Not enough room: this message is read again from its beginning next time.
            row = first_row
            break
        state[message] = result
        stopped[message] = at
        if result == BROKEN:
            row = first_row
        message += 1
    done[0] = message
    done[1] = row
