"""
The tape: every field of many messages in columns.

A kernel runs the programs of `dissector.protocol.program` over the bytes of all messages and writes
a row for each wanted field: its message, its number, its array item, the position of its content,
and its value. It checks each count and length against the remaining bytes, as the codecs do, and
agrees with them on every message that it reads to the end. The codecs read the others: a message
that does not fit stops at its place, without affecting the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dissector.engine.tape.tape_arrays import MessageArrays, Progress, new_rows, program_arrays
from dissector.engine.tape.tape_interpreter import (
    BROKEN,
    FITS,
    LEFT_OVER,
    NO_ITEM,
    NULL,
    UNKNOWN,
    run,
)
from dissector.kernel.named_rows import dtype_of
from dissector.protocol.program import ProgramTable

__all__ = [
    "BROKEN",
    "FITS",
    "LEFT_OVER",
    "NO_ITEM",
    "NULL",
    "UNKNOWN",
    "Tape",
    "read",
    "read_in_batches",
]

Ints: TypeAlias = NDArray[np.int64]
Int32s: TypeAlias = NDArray[np.int32]

BATCH_ROWS = 1 << 17
"""Rows of a batch: enough that the cost of each batch does not count, and few megabytes."""


@dataclass(slots=True)
class Tape:
    """
    The wanted fields of some messages, a row each, in wire order.

    Attributes:
        message: Number of the message.
        field: Number of the field, as in `Programs.places`.
        item: The array item that holds it: items are numbered through a message from 1, in wire
            order; 0 is the message.
        around: The item that holds this one; NO_ITEM where that is the message.
        start: Position of its content, in data or carry-over buffer: of texts and bytes behind the
            length.
        value: The number; of texts, bytes and uuids the length of the content; of arrays the count;
            NULL where it is null.
        state: Of each message: FITS, LEFT_OVER, BROKEN or UNKNOWN.
        end: Of each message: where reading stopped.
    """

    message: Int32s
    field: Int32s
    item: Int32s
    around: Int32s
    start: Ints
    value: Ints
    state: NDArray[np.int64]
    end: Ints

    def __len__(self) -> int:
        return len(self.message)


def read(
    data: NDArray[np.uint8],
    carry_over: NDArray[np.uint8],
    starts: Ints,
    ends: Ints,
    steps: Ints,
    programs: ProgramTable,
    wanted: NDArray[np.uint8],
) -> Tape:
    """Run messages through their programs, all at once; see `read_in_batches`."""
    tapes = [_empty(), *read_in_batches(data, carry_over, starts, ends, steps, programs, wanted)]
    first = 0
    for each in tapes:
        each.message += first
        first += len(each.state)
    names = [each.name for each in fields(Tape)]
    return Tape(*(np.concatenate([getattr(each, name) for each in tapes]) for name in names))


def read_in_batches(
    data: NDArray[np.uint8],
    carry_over: NDArray[np.uint8],
    starts: Ints,
    ends: Ints,
    steps: Ints,
    programs: ProgramTable,
    wanted: NDArray[np.uint8],
    max_rows: int = BATCH_ROWS,
) -> Iterator[Tape]:
    """
    Run messages through their programs, in batches that fit the tape.

    Args:
        data: Bytes of messages, and
        carry_over: of more messages, at offsets from the end of `data` on.
        starts: Begin of each message, including its header.
        ends: End of each message.
        steps: The first instruction of each one's program; negative without one.
        programs: The programs.
        wanted: For each field number whether it is wanted; fields beyond are not.
        max_rows: Maximum number of rows in a tape; for a single message it may be exceeded.

    Yields:
        Tapes of successive messages; each numbers its own from 0 on.
    """
    state = np.full(len(starts), UNKNOWN, np.int64)
    stopped = np.array(starts, np.int64)
    selected = np.zeros(len(programs.field_refs), np.uint8)
    selected[: min(len(wanted), len(selected))] = wanted[: len(selected)]
    program = program_arrays(programs, selected)
    first, capacity = 0, max_rows
    while first < len(starts):
        batch = slice(first, first + 1 if capacity > max_rows else None)
        out = new_rows(capacity)
        done = np.zeros((), dtype_of(Progress))
        messages = MessageArrays._make(
            each[batch] for each in (starts, ends, steps, state, stopped)
        )
        run(data, carry_over, messages, program, out, done)
        count, rows = int(done["messages"]), int(done["rows"])
        # A message that lacks room is read again: first in its own batch, then alone with more
        # room.
        capacity = max_rows if count else 2 * capacity
        if count:
            finished = slice(first, first + count)
            columns: list[Any] = [each[:rows] for each in out]
            yield Tape(*[*columns, state[finished], stopped[finished]])
            first += count


def _empty() -> Tape:
    """Return the tape of no messages."""
    columns: list[Any] = [*new_rows(0), np.empty(0, np.int64), np.empty(0, np.int64)]
    return Tape(*columns)
