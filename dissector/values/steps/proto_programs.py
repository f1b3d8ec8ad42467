"""Programs that find a field of Protobuf values, or write their texts, for their kernels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from dissector.kernel.named_rows import table_of
from dissector.values.protobuf.message_readers import UNSET, MessageReader
from dissector.values.protobuf.proto_declarations import ProtoField as Declared
from dissector.values.protobuf.well_known_types import ANY
from dissector.values.protobuf.wire_format import GROUP, SCALARS, SIZED, VARINT, ProtoRoom
from dissector.values.steps.field_arrays import Form
from dissector.values.steps.program_kernel import Program
from dissector.values.steps.proto_kernel import (
    NumberKind,
    ProtoField,
    ProtoOp,
    ProtoProgram,
    ProtoStyle,
    ProtoType,
)
from dissector.values.steps.proto_slots import KINDS, SlotWriter
from dissector.values.steps.step_programs import NO_AVRO, FieldProgram, Place, TextProgram
from dissector.values.value_limits import (
    MAX_OUTPUT,
    OUTPUT_PER_BYTE,
    SchemaProblem,
)

_MAX_FIELDS = 20_000
_MAX_LEVELS = 150
"""Types inside types."""

_DEFAULTS = {NumberKind.PLACED: Form.PLACED, NumberKind.BOOLEAN: Form.BOOLEAN}
_DEFAULTS[NumberKind.DOUBLE] = Form.DOUBLE


def proto_program(reader: MessageReader, path: Sequence[str], lead: bytes) -> FieldProgram | None:
    """
    Return what finds the field at a path; None if only the reader can.

    Args:
        reader: Of the message.
        path: Names of the field, and of the messages around it.
        lead: The bytes before the message.
    """
    writer = _ProgramWriter()
    try:
        if not writer.follows(reader, path):
            return None
        writer.write(reader, path)
    except SchemaProblem:
        return None
    return FieldProgram(lead, writer.program(), writer.places)


def proto_text_program(reader: MessageReader, lead: bytes) -> TextProgram | None:
    """Return what writes the texts of messages; None if only the reader can."""
    writer = _ProgramWriter(writes=True)
    try:
        writer.write(reader)
    except SchemaProblem:
        return None
    is_other = writer.types[0].style == ProtoStyle.OTHER or not writer.types[0].slots
    members = list(reader.start) if reader.finish is None else None
    return None if is_other else TextProgram(lead, writer.program(), members)


class _ProgramWriter:
    """
    Writes the types of messages.

    Attributes:
        types: The first is that of values.
        fields: Of all types.
        slots: How they are written.
        places: The fields that are found as bytes.
    """

    def __init__(self, *, writes: bool = False) -> None:
        """Start; `writes` asks for the texts of whole values."""
        self.types: list[ProtoType] = []
        self.fields: list[ProtoField] = []
        self.slots = SlotWriter()
        self.places: list[Place] = []
        self._writes = writes
        self._written: dict[str, int] = {}
        self._entries: set[str] = set()
        self._levels = 0

    def program(self) -> Program:
        """Return the program."""
        types, fields = table_of(self.types, ProtoType), table_of(self.fields, ProtoField)
        return Program(NO_AVRO, ProtoProgram._make((types, fields, *self.slots.tables())))

    def follows(self, reader: MessageReader, path: Sequence[str]) -> bool:
        """Return whether a path is followed into a message: to one value, if there is any."""
        if not path or reader.finish is not None or path[0].isdigit():
            return False
        return not any(
            field.is_repeated or field.is_group
            for field in reader.fields.values()
            if field.name == path[0]
        )

    def write(self, reader: MessageReader, path: Sequence[str] = ()) -> int:
        """
        Write a message, and those inside it; return its number.

        Args:
            reader: Of the message.
            path: Names to the field; none: it is only stepped over.
        """
        if not path and reader.full_name in self._written:
            return self._written[reader.full_name]
        number, first = len(self.types), len(self.fields)
        if not path:
            self._written[reader.full_name] = number
        keys = sorted(reader.puts)
        self._levels += 1
        if first + len(keys) > _MAX_FIELDS or self._levels > _MAX_LEVELS:
            raise SchemaProblem("too many fields")
        kind = ProtoType(first, len(keys), reader.output, Form.ABSENT)
        # The value of a map's entry that has none is an empty message.
        empty = [find() for name, find in reader.spans if reader.start[name] is not UNSET]
        kind.output += sum(each.output for each in empty)
        self.types.append(kind)
        fields = [_field_of(reader, key) for key in keys]
        self.fields += fields
        if self._writes:
            self.slots.write(reader, kind, fields, is_entry=reader.full_name in self._entries)
        for field in fields:
            declared = reader.fields[field.key]
            is_on_path = bool(path) and declared.name == path[0]
            inner = reader.inner[declared.name]() if field.op == ProtoOp.MESSAGE else None
            rest = path[1:] if is_on_path else ()
            if inner is not None and self.follows(inner, rest):
                field.message = self.write(inner, rest)
                continue
            if inner is not None:
                self._write_inner(reader, field, inner)
            if is_on_path and (inner is not None or len(path) == 1):
                self._want(reader, field, declared, kind, path)
        if path:
            _mark_others(reader, fields, path[0])
        self._levels -= 1
        return number

    def _write_inner(self, reader: MessageReader, field: ProtoField, inner: MessageReader) -> None:
        is_entry = reader.fields[field.key].name in reader.maps
        if is_entry:
            self._entries.add(inner.full_name)
        field.message = self.write(inner)
        if self._writes and is_entry != (self.types[field.message].style == ProtoStyle.ENTRY):
            raise SchemaProblem("an entry of a map is the value")

    def _want(
        self,
        reader: MessageReader,
        field: ProtoField,
        declared: Declared,
        around: ProtoType,
        path: Sequence[str],
    ) -> None:
        field.is_wanted = 1
        field.kind = KINDS.get(declared.type_name, NumberKind.PLACED)
        if reader.start[declared.name] is not UNSET:
            around.default = _DEFAULTS.get(field.kind, Form.INTEGER)
        self.places.append(Place(partial(_read_alone, reader), path))


def _field_of(reader: MessageReader, key: int) -> ProtoField:
    """Return what a key has behind it."""
    declared, wire = reader.fields[key], key & 7
    name = declared.name
    if wire == GROUP:
        return ProtoField(key, ProtoOp.OTHER)
    if name in reader.inner:
        is_any = reader.inner[name]().full_name == ANY  # its content has another schema
        return ProtoField(key, ProtoOp.OTHER if is_any else ProtoOp.MESSAGE)
    scalar = SCALARS.get(declared.type_name)
    if scalar is None and name not in reader.enums:
        op = ProtoOp.TEXT if declared.type_name == "string" else ProtoOp.BYTES
        return ProtoField(key, op)
    size = 0 if scalar is None else scalar.size
    output = 0
    if name in reader.enums:
        output = max(map(len, reader.enums[name].names.values()), default=0)
    if wire == SIZED:
        op = ProtoOp.PACKED_FIXED if size else ProtoOp.PACKED_VARINTS
    else:
        op = ProtoOp.VARINT if wire == VARINT else ProtoOp.FIXED
    return ProtoField(key, op, size, output=output)


def _mark_others(reader: MessageReader, fields: Sequence[ProtoField], name: str) -> None:
    """Mark the other fields of the oneof that a field is in."""
    oneofs = {each.oneof for each in reader.fields.values() if each.name == name and each.oneof}
    for field in fields:
        other = reader.fields[field.key]
        field.is_other = int(other.name != name and other.oneof in oneofs)


def _read_alone(reader: MessageReader, content: bytes) -> Any:
    """Return a message with one field, whose bytes were stepped over: its output has a limit."""
    room = ProtoRoom(MAX_OUTPUT // OUTPUT_PER_BYTE)
    return reader.read(content, 0, len(content), room)
