"""Programs that find a field of Avro values, for `avro_kernel`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from dissector.kernel.named_rows import table_of
from dissector.values.avro.avro_schema import AvroSchema
from dissector.values.avro.avro_shapes import (
    Blocks,
    Converted,
    Fixed,
    Record,
    Recursive,
    Shape,
    Symbols,
    Union,
)
from dissector.values.avro.avro_types import PRIMITIVES, Read
from dissector.values.steps.avro_kernel import AvroOp, AvroProgram, AvroStep, find_avro_fields
from dissector.values.steps.field_programs import FieldProgram, Place
from dissector.values.value_limits import MAX_OUTPUT, OUTPUT_PER_BYTE, Room

_MAX_STEPS = 4_000
_MAX_LEVELS = 150
"""Types inside types, as they are expanded."""


_PRIMITIVE_STEPS: Mapping[Read, AvroStep] = {
    PRIMITIVES["null"]: AvroStep(AvroOp.NULL),
    PRIMITIVES["boolean"]: AvroStep(AvroOp.BOOLEAN),
    PRIMITIVES["long"]: AvroStep(AvroOp.LONG),
    PRIMITIVES["float"]: AvroStep(AvroOp.FIXED, size=4),
    PRIMITIVES["double"]: AvroStep(AvroOp.DOUBLE),
    PRIMITIVES["bytes"]: AvroStep(AvroOp.BYTES),
    PRIMITIVES["string"]: AvroStep(AvroOp.TEXT),
}
_NUMBERS = {PRIMITIVES[name] for name in ("null", "boolean", "long", "double")}
"""Readers of values that the kernel reads itself."""


def avro_program(schema: AvroSchema, path: Sequence[str]) -> FieldProgram | None:
    """Return what finds the field at a path; None for a schema of too many steps."""
    writer = _ProgramWriter(schema.shapes)
    try:
        writer.write(schema.read, path, 0)
        writer.finish()
    except _TooLargeError:
        return None
    branches = np.array(writer.branches, np.int64)
    arrays = AvroProgram._make((table_of(writer.steps, AvroStep), branches))
    return FieldProgram(b"", writer.places, find_avro_fields, arrays)


class _TooLargeError(Exception):
    """A schema has too many steps."""


class _ProgramWriter:
    """Writes the steps of a schema."""

    def __init__(self, shapes: Mapping[Read, Shape]) -> None:
        self.steps: list[AvroStep] = []
        self.branches: list[int] = []
        self.places: list[Place] = []
        self._shapes = shapes
        self._calls: list[tuple[AvroStep, Callable[[], Read]]] = []

    def write(self, read: Read, path: Sequence[str] | None, level: int) -> None:
        """
        Write the steps of a type.

        Args:
            read: Its reader.
            path: Names to the field inside it; None: it is only stepped over.
            level: Types around it.
        """
        if level > _MAX_LEVELS or len(self.steps) > _MAX_STEPS:
            raise _TooLargeError
        shape = self._shapes.get(read)
        if isinstance(shape, Union):
            self._write_union(shape, path, level)
        elif isinstance(shape, Record) and path:
            self._write_record(shape, path, level)
        elif path is None or (path and shape is None):  # a primitive type has no fields
            self._write_whole(read, shape, level)
        else:
            self.steps.append(AvroStep(AvroOp.WANTED))
            self._write_whole(read, shape, level)
            is_number = int(read in _NUMBERS)
            self.steps.append(AvroStep(AvroOp.FOUND, size=is_number, to=len(self.places)))
            self.places.append(Place(partial(_read_alone, read), path))

    def finish(self) -> None:
        """Write the end, and behind it the types that are inside themselves."""
        self.steps.append(AvroStep(AvroOp.END))
        written: dict[Read, int] = {}
        while self._calls:
            call, target = self._calls.pop()
            read = target()
            if read not in written:
                written[read] = len(self.steps)
                self.write(read, None, 0)
                self.steps.append(AvroStep(AvroOp.RETURN))
            call.to = written[read]

    def _write_union(self, union: Union, path: Sequence[str] | None, level: int) -> None:
        first, count = len(self.branches), len(union.branches)
        self.steps.append(AvroStep(AvroOp.UNION, count=count, to=first))
        self.branches += [0] * count
        ends = []
        for number, branch in enumerate(union.branches):
            self.branches[first + number] = len(self.steps)
            self.write(branch, path, level + 1)
            ends.append(AvroStep(AvroOp.GO))
            self.steps.append(ends[-1])
        for end in ends:
            end.to = len(self.steps)

    def _write_record(self, record: Record, path: Sequence[str], level: int) -> None:
        self.steps.append(AvroStep(AvroOp.RECORD, size=record.output))
        # Of two fields with one name a decoded record has the last.
        wanted = {name: number for number, (name, _) in enumerate(record.fields)}.get(path[0])
        for number, (_, read) in enumerate(record.fields):
            self.write(read, path[1:] if number == wanted else None, level + 1)

    def _write_whole(self, read: Read, shape: Shape | None, level: int) -> None:
        """Write steps over a type that is no union."""
        match shape:
            case None:
                self.steps.append(_PRIMITIVE_STEPS[read])
            case Record(fields, output):
                self.steps.append(AvroStep(AvroOp.RECORD, size=output))
                for _, each in fields:
                    self.write(each, None, level + 1)
            case Blocks(parts):
                blocks = AvroStep(AvroOp.BLOCKS)
                self.steps.append(blocks)
                for each in parts:
                    self.write(each, None, level + 1)
                blocks.to = len(self.steps)
                self.steps.append(AvroStep(AvroOp.NEXT))
            case Fixed(size):
                self.steps.append(AvroStep(AvroOp.FIXED, size=size))
            case Symbols(count, output):
                self.steps.append(AvroStep(AvroOp.ENUM, size=output, count=count))
            case Converted(inner):
                self.write(inner, None, level + 1)
            case Recursive(target):
                call = AvroStep(AvroOp.CALL)
                self.steps.append(call)
                self._calls.append((call, target))


def _read_alone(read: Read, content: bytes) -> Any:
    """Return a value whose bytes were stepped over, so that its output is within its limits."""
    return read(content, 0, Room(MAX_OUTPUT // OUTPUT_PER_BYTE))[0]
