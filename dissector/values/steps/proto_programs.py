"""Programs that find a field of Protobuf values, for `proto_kernel`."""

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
    ProtoType,
)
from dissector.values.steps.step_programs import NO_AVRO, FieldProgram, Place
from dissector.values.value_limits import MAX_OUTPUT, OUTPUT_PER_BYTE, SchemaProblem

_MAX_FIELDS = 20_000
_MAX_LEVELS = 150
"""Types inside types."""

_KINDS = {
    "int64": NumberKind.INT64,
    "sfixed64": NumberKind.INT64,
    "uint64": NumberKind.UINT64,
    "fixed64": NumberKind.UINT64,
    "sint64": NumberKind.SINT64,
    "int32": NumberKind.INT32,
    "sfixed32": NumberKind.INT32,
    "uint32": NumberKind.UINT32,
    "fixed32": NumberKind.UINT32,
    "sint32": NumberKind.SINT32,
    "bool": NumberKind.BOOLEAN,
    "double": NumberKind.DOUBLE,
}

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
    types = table_of(writer.types, ProtoType)
    fields = table_of(writer.fields, ProtoField)
    program = Program(NO_AVRO, ProtoProgram(types, fields))
    return FieldProgram(lead, program, writer.places)


class _ProgramWriter:
    """Writes the types of messages."""

    def __init__(self) -> None:
        self.types: list[ProtoType] = []
        self.fields: list[ProtoField] = []
        self.places: list[Place] = []
        self._written: dict[str, int] = {}
        self._levels = 0

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
        for field in fields:
            declared = reader.fields[field.key]
            is_on_path = bool(path) and declared.name == path[0]
            inner = reader.inner[declared.name]() if field.op == ProtoOp.MESSAGE else None
            rest = path[1:] if is_on_path else ()
            if inner is not None and self.follows(inner, rest):
                field.message = self.write(inner, rest)
                continue
            if inner is not None:
                field.message = self.write(inner)
            if is_on_path and (inner is not None or len(path) == 1):
                self._want(reader, field, declared, kind, path)
        if path:
            _mark_others(reader, fields, path[0])
        self._levels -= 1
        return number

    def _want(
        self,
        reader: MessageReader,
        field: ProtoField,
        declared: Declared,
        around: ProtoType,
        path: Sequence[str],
    ) -> None:
        field.is_wanted = 1
        field.kind = _KINDS.get(declared.type_name, NumberKind.PLACED)
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
    if wire == SIZED:
        op = ProtoOp.PACKED_FIXED if size else ProtoOp.PACKED_VARINTS
    else:
        op = ProtoOp.VARINT if wire == VARINT else ProtoOp.FIXED
    return ProtoField(key, op, size, output=reader.enums.get(name, 0))


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
