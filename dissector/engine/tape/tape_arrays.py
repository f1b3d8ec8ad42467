"""The arrays that kernels of the tape read and write, in groups."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dissector.kernel.arrays import I32, I64, U8, I64Table

DEPTH = 24
"""Depth of nested arrays and tag sections; declarations have nine at most."""

STEP, LEFT, BEHIND, ITEM, AROUND = range(5)
"""
Columns of `ProgramArrays.stack`. Of an array that is being read: its first instruction, its
remaining items, the instruction behind it; the item that holds the array, and the one around that.
"""
STACK_WIDTH = 5


class ProgramArrays(NamedTuple):
    """
    Programs of messages; see `dissector.protocol.program`.

    Attributes:
        code: The instructions.
        tags: The known tags of tag sections.
        wanted: For each field number whether its rows are wanted.
        stack: Space for open arrays and tag sections.
    """

    code: I64Table
    tags: I64Table
    wanted: U8
    stack: I64Table


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


def program_arrays(code: Any, tags: Any, wanted: Any) -> ProgramArrays:
    """Return programs with a separate stack."""
    stack = np.zeros((DEPTH, STACK_WIDTH), np.int64)
    return ProgramArrays._make((code, tags, wanted, stack))


def new_rows(capacity: int) -> TapeRows:
    """Return columns with the given capacity."""
    kinds = np.int32, np.int32, np.int32, np.int32, np.int64, np.int64
    return TapeRows._make(np.empty(capacity, kind) for kind in kinds)
