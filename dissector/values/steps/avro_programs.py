"""Programs that find a field of Avro values, or write their texts, for `avro_kernel`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
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
from dissector.values.json_values import compact_json
from dissector.values.steps.avro_kernel import AvroOp, AvroProgram, AvroStep
from dissector.values.steps.field_arrays import DEPTH
from dissector.values.steps.program_kernel import Program
from dissector.values.steps.step_programs import NO_PROTO, FieldProgram, Place, TextProgram
from dissector.values.steps.value_texts import Put
from dissector.values.value_limits import MAX_OUTPUT, MAX_SCHEMA_BYTES, OUTPUT_PER_BYTE, Room

_MAX_STEPS = 4_000
_MAX_LEVELS = 150
"""Types inside types, as they are expanded."""


_MAX_NESTED = 800
"""Calls of readers inside calls: a decoder can't have some more."""

_PRIMITIVE_STEPS: Mapping[Read, AvroStep] = {
    PRIMITIVES["null"]: AvroStep(AvroOp.NULL),
    PRIMITIVES["boolean"]: AvroStep(AvroOp.BOOLEAN),
    PRIMITIVES["long"]: AvroStep(AvroOp.LONG),
    PRIMITIVES["float"]: AvroStep(AvroOp.FLOAT),
    PRIMITIVES["double"]: AvroStep(AvroOp.DOUBLE),
    PRIMITIVES["bytes"]: AvroStep(AvroOp.BYTES),
    PRIMITIVES["string"]: AvroStep(AvroOp.TEXT),
}
_NUMBERS = {PRIMITIVES[name] for name in ("null", "boolean", "long", "float", "double")}
"""Readers of values that the kernel reads itself."""

_PUTS: Mapping[Read, int] = {
    PRIMITIVES["boolean"]: Put.BOOLEAN,
    PRIMITIVES["long"]: Put.INTEGER,
    PRIMITIVES["float"]: Put.DOUBLE,
    PRIMITIVES["double"]: Put.DOUBLE,
    PRIMITIVES["bytes"]: Put.HEX,
    PRIMITIVES["string"]: Put.TEXT,
}
_LOGICAL_PUTS = {
    "date": Put.DATE,
    "time-millis": Put.CLOCK,
    "time-micros": Put.CLOCK,
    "decimal": Put.DECIMAL,
    "uuid": Put.UUID,
} | {
    f"{local}timestamp-{unit}": Put.LOCAL_TIMESTAMP if local else Put.TIMESTAMP
    for local in ("", "local-")
    for unit in ("millis", "micros", "nanos")
}
_PLACES = {"millis": 3, "micros": 6, "nanos": 9}


def avro_program(schema: AvroSchema, path: Sequence[str]) -> FieldProgram | None:
    """Return what finds the field at a path; None for a schema of too many steps."""
    writer = _ProgramWriter(schema.shapes)
    program = writer.program(schema.read, path)
    return None if program is None else FieldProgram(b"", program, writer.places)


def avro_text_program(schema: AvroSchema) -> TextProgram | None:
    """Return what writes the texts of values; None for a schema of too many steps."""
    program = _ProgramWriter(schema.shapes, writes=True).program(schema.read, None)
    shape = schema.shapes.get(schema.read)
    members = [name for name, _ in shape.fields] if isinstance(shape, Record) else None
    return None if program is None else TextProgram(b"", program, members)


class _NoProgramError(Exception):
    """A schema has too many steps, or names that are not written as they are."""


class _ProgramWriter:
    """
    Writes the steps of a schema.

    Attributes:
        places: The fields that are found as bytes.
    """

    def __init__(self, shapes: Mapping[Read, Shape], *, writes: bool = False) -> None:
        """Start; `writes` asks for the texts of whole values."""
        self.places: list[Place] = []
        self._steps: list[AvroStep] = []
        self._branches: list[int] = []
        self._literals = bytearray()
        self._begun = 0
        self._shapes = shapes
        self._writes = writes
        self._calls: list[tuple[AvroStep, Callable[[], Read]]] = []
        self._deepest = 0

    def program(self, read: Read, path: Sequence[str] | None) -> Program | None:
        """Return the program of a type; None if it has too many steps."""
        try:
            self.write(read, path, 0)
            self._finish()
        except _NoProgramError:
            return None
        steps = table_of(self._steps, AvroStep)
        branches = np.array(self._branches, np.int64)
        literals = np.frombuffer(bytes(self._literals), np.uint8)
        return Program(AvroProgram._make((steps, branches, literals)), NO_PROTO)

    def write(self, read: Read, path: Sequence[str] | None, level: int) -> None:
        """
        Write the steps of a type.

        Args:
            read: Its reader.
            path: Names to the field inside it; None: it is only stepped over.
            level: Types around it.
        """
        if level > _MAX_LEVELS or len(self._steps) > _MAX_STEPS:
            raise _NoProgramError
        self._deepest = max(self._deepest, level)
        shape = self._shapes.get(read)
        if isinstance(shape, Union):
            self._write_union(shape, path, level)
        elif isinstance(shape, Record) and path:
            self._write_record(shape, path, level)
        elif path is None or (path and shape is None):  # a primitive type has no fields
            self._write_whole(read, shape, level)
        else:
            self._add(AvroStep(AvroOp.WANTED))
            self._write_whole(read, shape, level)
            is_number = int(read in _NUMBERS)
            self._add(AvroStep(AvroOp.FOUND, size=is_number, to=len(self.places)))
            self.places.append(Place(partial(_read_alone, read), path))

    def _finish(self) -> None:
        """Write the end, and behind it the types that are inside themselves."""
        self._add(AvroStep(AvroOp.END))
        written: dict[Read, int] = {}
        while self._calls:
            call, target = self._calls.pop()
            read = target()
            if read not in written:
                written[read] = self._here()
                self.write(read, None, 0)
                self._add(AvroStep(AvroOp.RETURN))
            call.to = written[read]
        if written and self._deepest * DEPTH > _MAX_NESTED:
            raise _NoProgramError

    def _add(self, step: AvroStep) -> AvroStep:
        """Add a step."""
        self._here()
        self._steps.append(step)
        return step

    def _here(self) -> int:
        """Return the number of the next step, behind the text that is written before it."""
        size = len(self._literals) - self._begun
        if size:
            self._steps.append(AvroStep(AvroOp.LITERAL, size=size, to=self._begun))
            self._begun += size
        return len(self._steps)

    def _literal(self, text: str) -> None:
        """Write a text, if texts are wanted."""
        if self._writes:
            if not text.isprintable() or len(self._literals) > MAX_SCHEMA_BYTES:
                raise _NoProgramError
            self._literals += text.encode()

    def _put(self, how: int, scale: int = 0) -> None:
        """Write what the last step has read, if texts are wanted."""
        if self._writes:
            self._add(AvroStep(AvroOp.PUT, size=how, count=scale))

    def _write_union(self, union: Union, path: Sequence[str] | None, level: int) -> None:
        first, count = len(self._branches), len(union.branches)
        self._add(AvroStep(AvroOp.UNION, count=count, to=first))
        self._branches += [0] * count
        ends = []
        for number, branch in enumerate(union.branches):
            self._branches[first + number] = self._here()
            self.write(branch, path, level + 1)
            ends.append(self._add(AvroStep(AvroOp.GO)))
        for end in ends:
            end.to = self._here()

    def _write_record(self, record: Record, path: Sequence[str], level: int) -> None:
        self._add(AvroStep(AvroOp.RECORD, size=record.output))
        # Of two fields with one name a decoded record has the last.
        wanted = {name: number for number, (name, _) in enumerate(record.fields)}.get(path[0])
        for number, (_, read) in enumerate(record.fields):
            self.write(read, path[1:] if number == wanted else None, level + 1)

    def _write_whole(self, read: Read, shape: Shape | None, level: int) -> None:
        """Write steps over a type that is no union."""
        match shape:
            case None:
                self._write_primitive(read)
            case Record(fields, output):
                self._add(AvroStep(AvroOp.RECORD, size=output))
                self._write_fields(fields, level)
            case Blocks(parts):
                self._write_blocks(parts, level)
            case Fixed(size):
                self._add(AvroStep(AvroOp.FIXED, size=size))
                self._put(Put.HEX)
            case Symbols(names, output):
                self._add(AvroStep(AvroOp.ENUM, size=output, count=len(names)))
                self._write_symbols(names)
            case Converted():
                self._write_converted(shape, level)
            case Recursive(target):
                self._calls.append((self._add(AvroStep(AvroOp.CALL)), target))

    def _write_primitive(self, read: Read) -> None:
        self._add(replace(_PRIMITIVE_STEPS[read]))
        if read in _PUTS:
            self._put(_PUTS[read])
        else:
            self._literal("null")

    def _write_fields(self, fields: Sequence[tuple[str, Read]], level: int) -> None:
        if self._writes and len({name for name, _ in fields}) < len(fields):
            raise _NoProgramError
        before = "{"
        for name, read in fields:
            self._literal(f"{before}{compact_json(name)}: ")
            self.write(read, None, level + 1)
            before = ", "
        self._literal("}" if fields else "{}")

    def _write_blocks(self, parts: Sequence[Read], level: int) -> None:
        is_map = len(parts) > 1
        self._literal("{" if is_map else "[")
        blocks = self._add(AvroStep(AvroOp.BLOCKS))
        if self._writes:
            self._add(AvroStep(AvroOp.COMMA))
        for number, each in enumerate(parts):
            if self._writes and is_map and number == 0:
                self._add(replace(_PRIMITIVE_STEPS[each]))
                self._add(AvroStep(AvroOp.KEY))
                self._literal(": ")
            else:
                self.write(each, None, level + 1)
        blocks.to = self._here()
        self._add(AvroStep(AvroOp.NEXT))
        self._literal("}" if is_map else "]")

    def _write_symbols(self, names: Sequence[str]) -> None:
        if not self._writes:
            return
        self._add(AvroStep(AvroOp.SYMBOL, to=len(self._branches)))
        for name in names:
            self._branches.append(len(self._literals))
            self._literal(compact_json(name))
        self._branches.append(len(self._literals))
        self._begun = len(self._literals)

    def _write_converted(self, converted: Converted, level: int) -> None:
        read, logical, scale = converted
        if not self._writes:
            self.write(read, None, level + 1)
            return
        shape = self._shapes.get(read)
        size = shape.size if isinstance(shape, Fixed) else 0
        step = AvroStep(AvroOp.FIXED, size=size) if shape else replace(_PRIMITIVE_STEPS[read])
        self._add(step)
        if logical not in _LOGICAL_PUTS:
            self._add(AvroStep(AvroOp.OTHER))
            return
        self._put(_LOGICAL_PUTS[logical], _PLACES.get(logical.rpartition("-")[2], scale))


def _read_alone(read: Read, content: bytes) -> Any:
    """Return a value whose bytes were stepped over, so that its output is within its limits."""
    return read(content, 0, Room(MAX_OUTPUT // OUTPUT_PER_BYTE))[0]
