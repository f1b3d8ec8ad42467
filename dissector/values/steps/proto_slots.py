"""How messages of Protobuf are written: the part of their programs for `proto_text_kernel`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dissector.kernel.named_rows import RowArray, table_of
from dissector.values.json_values import compact_json
from dissector.values.protobuf.message_readers import UNSET, MessageReader, map_key
from dissector.values.protobuf.proto_declarations import ProtoEnum
from dissector.values.protobuf.well_known_types import FINISHES, WRAPPED
from dissector.values.protobuf.wire_format import ProtoRoom
from dissector.values.steps.field_arrays import MAX_SEEN
from dissector.values.steps.proto_kernel import (
    NumberKind,
    ProtoField,
    ProtoName,
    ProtoOp,
    ProtoSlot,
    ProtoStyle,
    ProtoType,
)
from dissector.values.steps.proto_text_kernel import LITERALS, Literal
from dissector.values.steps.value_texts import Put
from dissector.values.value_limits import (
    MAX_OUTPUT,
    MAX_SCHEMA_BYTES,
    OUTPUT_PER_BYTE,
    SchemaProblem,
)

KINDS = {
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

_PUTS = {
    "uint64": Put.UNSIGNED,
    "fixed64": Put.UNSIGNED,
    "bool": Put.BOOLEAN,
    "double": Put.DOUBLE,
    "string": Put.TEXT,
    "bytes": Put.BASE64,
}

_STYLES = {
    **dict.fromkeys(FINISHES, ProtoStyle.OTHER),
    "google.protobuf.Any": ProtoStyle.OTHER,
    "google.protobuf.Timestamp": ProtoStyle.TIMESTAMP,
    "google.protobuf.Duration": ProtoStyle.DURATION,
    "google.protobuf.Struct": ProtoStyle.BARE,
    "google.protobuf.ListValue": ProtoStyle.BARE,
    "google.protobuf.Value": ProtoStyle.VALUE,
} | {f"google.protobuf.{name}Value": ProtoStyle.BARE for name in WRAPPED}


class SlotWriter:
    """Writes the fields of messages in the order of their declaration."""

    def __init__(self) -> None:
        self._slots: list[ProtoSlot] = []
        self._names: list[ProtoName] = []
        self._enums: dict[str, tuple[int, int]] = {}
        self._literals = bytearray(LITERALS)

    def tables(self) -> tuple[RowArray, RowArray, NDArray[np.uint8]]:
        """Return the slots, the names of enums, and the literals."""
        literals = np.frombuffer(bytes(self._literals), np.uint8)
        return table_of(self._slots, ProtoSlot), table_of(self._names, ProtoName), literals

    def write(
        self,
        reader: MessageReader,
        kind: ProtoType,
        fields: Sequence[ProtoField],
        *,
        is_entry: bool,
    ) -> None:
        """
        Write how a message is written.

        Args:
            reader: Of the message.
            kind: Its type.
            fields: Its fields by their keys.
            is_entry: Whether it is an entry of a map.

        Raises:
            SchemaProblem: It is left to the reader.
        """
        names = list(reader.start)
        oneofs = sorted({each.oneof for each in reader.fields.values() if each.oneof})
        kind.style = ProtoStyle.ENTRY if is_entry else _style_of(reader)
        kind.first_slot, kind.slots = len(self._slots), len(names)
        kind.seen = len(names) + len(oneofs)
        if kind.seen > MAX_SEEN:
            raise SchemaProblem("too many fields")
        declared = {each.name: each for each in reader.fields.values()}
        for name in names:
            before = {ProtoStyle.MESSAGE: f", {compact_json(name)}: ", ProtoStyle.ENTRY: ": "}
            text = before.get(kind.style, "  ")
            brackets = 0
            if declared[name].is_repeated:
                brackets = Literal.MAP if name in reader.maps else Literal.LIST
            default = self._literal(_default_text(reader, name, kind.style))
            self._slots.append(ProtoSlot(*self._literal(text), *default, brackets))
        for field in fields:
            each = reader.fields[field.key]
            field.slot = names.index(each.name)
            field.oneof = len(names) + oneofs.index(each.oneof) if each.oneof else 0
            field.is_list = int(each.is_repeated)
            field.kind = KINDS.get(each.type_name, NumberKind.PLACED)
            if each.type_name == "float":
                field.op = ProtoOp.OTHER
            field.how = _PUTS.get(each.type_name, Put.INTEGER)
            is_key = kind.style == ProtoStyle.ENTRY and each.name == "key"
            field.is_quoted = int(is_key and each.type_name != "string")
            if each.name in reader.enums:
                field.how, field.kind = Put.NAME, NumberKind.INT32
                field.first_name, field.names = self._names_of(reader.enums[each.name])
            if kind.style == ProtoStyle.VALUE and each.name == "null_value":
                field.how = Put.NULL

    def _names_of(self, enum: ProtoEnum) -> tuple[int, int]:
        """Return the first of an enum's names, and their number."""
        if enum.full_name not in self._enums:
            self._enums[enum.full_name] = len(self._names), len(enum.names)
            for number, name in sorted(enum.names.items()):
                self._names.append(ProtoName(number, *self._literal(compact_json(name))))
        return self._enums[enum.full_name]

    def _literal(self, text: str) -> tuple[int, int]:
        """Add a literal; return its begin and its size."""
        if not text.isprintable() or len(self._literals) > MAX_SCHEMA_BYTES:
            raise SchemaProblem("a name that is not written as it is")
        start, content = len(self._literals), text.encode()
        self._literals += content
        return start, len(content)


def _style_of(reader: MessageReader) -> int:
    return ProtoStyle.MESSAGE if reader.finish is None else _STYLES[reader.full_name]


def _default_text(reader: MessageReader, name: str, style: int) -> str:
    """Return what a field is that is not set; nothing: it is left out."""
    value = reader.start[name]
    if value is UNSET:
        return ""
    if name in dict(reader.spans):
        value = reader.inner[name]().read(b"", 0, 0, ProtoRoom(MAX_OUTPUT // OUTPUT_PER_BYTE))
    is_key = style == ProtoStyle.ENTRY and name == "key"
    return compact_json(map_key(value) if is_key else value)
