"""Programs of steps over values: the arrays that they run with, and what they find."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dissector.kernel.arrays import Buffers
from dissector.kernel.json_strings import UNSAFE
from dissector.kernel.named_rows import dtype_of, table_of
from dissector.kernel.shortest_doubles import PowersOf10, powers_of_10
from dissector.values.steps.avro_kernel import AvroProgram, AvroStep
from dissector.values.steps.field_arrays import (
    DEPTH,
    MAX_KEYS,
    MAX_SEEN,
    Form,
    FoundFields,
    Frame,
    KeyText,
    SeenField,
    TextOutput,
    TextUse,
    ValueRows,
    Work,
)
from dissector.values.steps.program_kernel import Program, run_program
from dissector.values.steps.proto_kernel import (
    ProtoField,
    ProtoName,
    ProtoProgram,
    ProtoSlot,
    ProtoType,
)
from dissector.values.value_limits import MAX_OUTPUT

_Ints: TypeAlias = NDArray[np.int64]
_Bytes: TypeAlias = NDArray[np.uint8]

_NOTHING: _Bytes = np.zeros(0, np.uint8)

NO_AVRO = AvroProgram._make((table_of([], AvroStep), np.zeros(0, np.int64), _NOTHING))
NO_PROTO = ProtoProgram._make(
    (*(table_of([], row) for row in (ProtoType, ProtoField, ProtoSlot, ProtoName)), _NOTHING)
)

_TEXT_BYTES = 4
"""Bytes of text for each byte of values, for a start."""
_MIN_TEXT = 1 << 16
_MAX_TEXT = 4 * MAX_OUTPUT
"""Room for a text, with escapes, at most: a value that needs more is left to the decoder."""


class FieldColumns(NamedTuple):
    """The field of each row; see `FoundFields`."""

    form: _Ints
    number: _Ints
    size: _Ints
    place: _Ints


class Place(NamedTuple):
    """
    A field that programs find as bytes.

    Attributes:
        read: Returns its value in the types of JSON.
        rest: The names of the path inside the value.
    """

    read: Callable[[bytes], Any]
    rest: Sequence[str]


class TextColumns(NamedTuple):
    """
    The texts of values.

    Attributes:
        form: WRITTEN; or OTHER or REFUSED, of those that have none, and ABSENT of null.
        start: Where each begins.
        size: Its bytes.
        texts: All, in parts that follow each other.
    """

    form: _Ints
    start: _Ints
    size: _Ints
    texts: Sequence[_Bytes]


@dataclass(eq=False, slots=True)
class StepProgram:
    """
    What is done with values that begin with some bytes.

    Attributes:
        lead: These bytes, behind the prefix with the id of the schema.
        program: The steps.
    """

    lead: bytes
    program: Program


class _Run:
    """A run of a program over some values."""

    def __init__(
        self, steps: StepProgram, prefix: bytes, start: _Ints, length: _Ints, buffers: Buffers
    ) -> None:
        self.columns = FieldColumns(*(np.zeros(len(start), np.int64) for _ in FieldColumns._fields))
        self.use = np.zeros(1, dtype_of(TextUse))
        self._program, self._buffers = steps.program, buffers
        self._rows = ValueRows._make((start, length))
        self._lead = np.frombuffer(prefix + steps.lead, np.uint8)
        self._frames = np.zeros(DEPTH, dtype_of(Frame))
        self._seen = np.zeros(MAX_SEEN, dtype_of(SeenField))
        self._keys = np.zeros(MAX_KEYS, dtype_of(KeyText))

    def run(self, out: _Bytes) -> None:
        """Go on, with an empty output."""
        self.use["bytes"] = 0
        text = TextOutput._make((out, self.use, self._keys, UNSAFE, _powers()))
        found = FoundFields._make(self.columns)
        work = Work._make((self._lead, self._frames, self._seen, found, text))
        run_program(self._rows, self._buffers, self._program, work)


@dataclass(eq=False, slots=True)
class FieldProgram(StepProgram):
    """
    Finds a field of values.

    Attributes:
        places: The fields that are found as bytes.
    """

    places: Sequence[Place]

    def find(self, prefix: bytes, start: _Ints, length: _Ints, buffers: Buffers) -> FieldColumns:
        """
        Find the field of some values.

        Args:
            prefix: What values of the program's schema begin with.
            start: Address of each value; negative for null.
            length: Its bytes.
            buffers: The bytes that they refer to.
        """
        run = _Run(self, prefix, start, length, buffers)
        run.run(_NOTHING)
        return run.columns


@dataclass(eq=False, slots=True)
class TextProgram(StepProgram):
    """
    Writes the texts of values.

    Attributes:
        members: The names that values may have; None if they are not known.
        format: The format of all values; None if it depends on the value.
        schema: The name of the schema.
    """

    members: Collection[str] | None = None
    format: str | None = None
    schema: str | None = None

    def write(self, prefix: bytes, start: _Ints, length: _Ints, buffers: Buffers) -> TextColumns:
        """Write the texts of some values; see `FieldProgram.find`."""
        run = _Run(self, prefix, start, length, buffers)
        form, begin, size, _ = run.columns
        texts: list[_Bytes] = []
        room, written = max(_MIN_TEXT, _TEXT_BYTES * int(length.sum())), 0
        while (row := int(run.use["row"][0])) < len(start):
            out = np.empty(room, np.uint8)
            run.run(out)
            used, end = int(run.use["bytes"][0]), int(run.use["row"][0])
            begin[row:end] += written
            written += used
            texts.append(out[:used])
            if end == row and room < _MAX_TEXT:
                room = 2 * room
            elif end == row:
                form[row] = Form.REFUSED
                run.use["row"] = row + 1
        return TextColumns(form, begin, size, texts)


@cache
def _powers() -> PowersOf10:
    return powers_of_10()
