"""
The tape: every field of many messages at once, in columns.

One loop runs the programs of `dissector.protocol.program` over the bytes of all messages and writes
a row for each field that is wanted: which message, which field, of which item of an array, where
its content lies, and its value. It checks each count and length against the bytes left, as the
codecs do, and agrees with them on every message that it reads to the end. What it can't read it
leaves to them: a message that does not fit stops with its place, and no other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dissector.engine.tape_loop import (
    BROKEN,
    DEPTH,
    FITS,
    LEFT_OVER,
    NO_ITEM,
    NULL,
    STACK_WIDTH,
    UNKNOWN,
    run,
)
from dissector.protocol.program import Programs

__all__ = ["BROKEN", "DEPTH", "FITS", "LEFT_OVER", "NO_ITEM", "NULL", "UNKNOWN", "Tape", "read"]

Ints: TypeAlias = NDArray[np.int64]
Numbers: TypeAlias = NDArray[np.int32]


@dataclass(slots=True)
class Tape:
    """
    The wanted fields of some messages, a row each, in wire order.

    Attributes:
        message: Number of the message.
        field: Number of the field, as in `Programs.places`.
        item: Which item of an array holds it: items are numbered through a message from 1, in wire
            order; 0 is the message.
        around: The item that holds this one; NO_ITEM where that is the message.
        start: Where its content lies, in data or held: of texts and bytes behind the length.
        value: The number; of texts, bytes and uuids the length of the content; of arrays the count;
            NULL where it is null.
        state: Of each message: FITS, LEFT_OVER, BROKEN or UNKNOWN.
        end: Of each message: where reading stopped.
    """

    message: Numbers
    field: Numbers
    item: Numbers
    around: Numbers
    start: Ints
    value: Ints
    state: NDArray[np.int64]
    end: Ints

    def __len__(self) -> int:
        return len(self.message)


def read(
    data: NDArray[np.uint8],
    held: NDArray[np.uint8],
    starts: Ints,
    ends: Ints,
    steps: Ints,
    programs: Programs,
    wanted: NDArray[np.uint8],
) -> Tape:
    """
    Run messages through their programs.

    Args:
        data: Bytes of messages, and
        held: of more messages, at offsets from the end of `data` on.
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
    parts: list[list[NDArray[Any]]] = []
    stack = np.zeros((DEPTH, STACK_WIDTH), np.int64)
    done = np.zeros(2, np.int64)
    room = max(1024, work)
    while int(done[0]) < count:
        out = [np.empty(room, kind) for kind in _KINDS]
        run(
            data,
            held,
            starts,
            ends,
            steps,
            code,
            tags,
            chosen,
            stack,
            state,
            stopped,
            *out,
            done,
            work=work,
        )
        parts.append([column[: int(done[1])] for column in out])
        # A message that finds too little room begins anew in the next piece, with more.
        room = room * 2 if not done[1] else room
    if not parts:
        parts.append([np.empty(0, kind) for kind in _KINDS])
    first, *more = parts
    message, number, item, around, start, value = (
        [np.concatenate(each) for each in zip(*parts, strict=True)] if more else first
    )
    return Tape(message, number, item, around, start, value, state, stopped)


_KINDS = np.int32, np.int32, np.int32, np.int32, np.int64, np.int64
"""The types of the columns."""
