"""The arrays that kernels of the tape read and write, in groups."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dissector.kernel.arrays import I32, I64, U8
from dissector.kernel.named_rows import NamedRow, Rows, dtype_of
from dissector.protocol.program import Instruction, KnownTag, ProgramTable

DEPTH = 24
"""Depth of nested arrays and tag sections; declarations have nine at most."""


class OpenArray(NamedRow):
    """
    An array that is being read.

    Attributes:
        step: Its first instruction.
        left: Its remaining items.
        behind: The instruction behind it.
        item: The item that holds the array.
        around: The item around that one.
    """

    step: int
    left: int
    behind: int
    item: int
    around: int


class OpenSection(NamedRow):
    """
    A tag section of which a declared tag is being read.

    Attributes:
        field_end: End of the field.
        left: The remaining tags.
        last: The last tag.
    """

    field_end: int
    left: int
    last: int


class ProgramArrays(NamedTuple):
    """
    Programs of messages; see `dissector.protocol.program`.

    Attributes:
        code: The instructions.
        tags: The known tags of tag sections.
        wanted: For each field number whether its rows are wanted.
        arrays: Space for the open arrays.
        sections: Space for the open tag sections.
    """

    code: Rows[Instruction]
    tags: Rows[KnownTag]
    wanted: U8
    arrays: Rows[OpenArray]
    sections: Rows[OpenSection]


class MessageArrays(NamedTuple):
    """
    The messages to read.

    Attributes:
        start: Begin of each message.
        end: End of each message.
        step: The first instruction of its program; negative without one.
        state: Receives its state.
        stopped: Receives where reading stopped.
    """

    start: I64
    end: I64
    step: I64
    state: I64
    stopped: I64


class TapeRows(NamedTuple):
    """The rows of the tape; see `tape.Tape`."""

    message: I32
    field: I32
    item: I32
    around: I32
    start: I64
    value: I64


class Progress(NamedRow):
    """
    How far the kernel came.

    Attributes:
        messages: Number of messages read; the kernel continues with the next.
        rows: Rows written.
    """

    messages: int
    rows: int


def program_arrays(programs: ProgramTable, wanted: Any) -> ProgramArrays:
    """Return the arrays of programs, with space of their own for what is open."""
    stacks = np.zeros(DEPTH, dtype_of(OpenArray)), np.zeros(DEPTH, dtype_of(OpenSection))
    return ProgramArrays._make((*programs.tables(), wanted, *stacks))


def new_rows(capacity: int) -> TapeRows:
    """Return columns with the given capacity."""
    kinds = np.int32, np.int32, np.int32, np.int32, np.int64, np.int64
    return TapeRows._make(np.empty(capacity, kind) for kind in kinds)
