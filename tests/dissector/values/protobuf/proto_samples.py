"""Random Protobuf files, as descriptors and as texts, and random messages of them."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import google.protobuf.any_pb2
import google.protobuf.duration_pb2
import google.protobuf.field_mask_pb2
import google.protobuf.struct_pb2
import google.protobuf.timestamp_pb2
import google.protobuf.wrappers_pb2  # noqa: F401 (their types are in the default pool)
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, struct_pb2
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field

TYPES = {
    name: getattr(Field, f"TYPE_{name.upper()}")
    for name in (
        *("double", "float", "int64", "uint64", "int32", "fixed64", "fixed32", "bool", "string"),
        *("bytes", "uint32", "sfixed32", "sfixed64", "sint32", "sint64"),
    )
}
NAMES = {number: name for name, number in TYPES.items()}
KEYS = ("int32", "uint64", "sint32", "fixed64", "bool", "string")
WELL_KNOWN = ("timestamp.Timestamp", "duration.Duration", "wrappers.Int64Value")
WELL_KNOWN += ("wrappers.StringValue", "struct.Struct", "struct.Value", "field_mask.FieldMask")
IMPORTS = [
    f"google/protobuf/{name}.proto"
    for name in ("timestamp", "duration", "wrappers", "struct", "field_mask")
]
WORDS = ("", "a", "Ünïcode", "line\nbreak", '"quoted"', "x" * 200)


class ProtoSamples:
    """A random file, and messages of its first type."""

    def __init__(self, random: Random, syntax: str = "proto3") -> None:
        self._random = random
        self._count = 0
        self.file = descriptor_pb2.FileDescriptorProto(
            name="samples.proto", package="some.shop", syntax=syntax, dependency=IMPORTS
        )
        self._enum = self.file.enum_type.add(name="Colour")
        for number, name in enumerate(("NONE", "RED", "BLUE")):
            self._enum.value.add(name=name, number=number * 70)
        self._fill(self.file.message_type.add(name="Order"), "some.shop.Order", 0)
        pool = descriptor_pool.DescriptorPool()
        for name in IMPORTS:
            found = descriptor_pool.Default().FindFileByName(name)
            copied = descriptor_pb2.FileDescriptorProto()
            found.CopyToProto(copied)
            pool.Add(copied)
        pool.Add(self.file)
        self.kind = message_factory.GetMessageClass(pool.FindMessageTypeByName("some.shop.Order"))

    def _fill(self, message: Any, full_name: str, depth: int) -> None:
        random = self._random
        has_oneof = random.random() < 0.4
        if has_oneof:
            message.oneof_decl.add(name="choice")
        inner = []
        if depth < 3:
            for _ in range(random.randrange(3)):
                self._count += 1
                name = f"Inner{self._count}"
                inner.append(f".{full_name}.{name}")
                self._fill(message.nested_type.add(name=name), f"{full_name}.{name}", depth + 1)
        numbers = range(1, random.choice((10, 16, 40)))
        for number in random.sample(numbers, random.randrange(1, 8)):
            field = message.field.add(name=f"field_{number}", number=number)
            field.label = random.choice([Field.LABEL_OPTIONAL, Field.LABEL_REPEATED])
            self._choose_type(field, inner)
            if field.label == Field.LABEL_OPTIONAL:
                if has_oneof and random.random() < 0.5:
                    field.oneof_index = 0
                elif self.file.syntax == "proto3" and random.random() < 0.2:
                    field.proto3_optional = True
                    field.oneof_index = len(message.oneof_decl)
                    message.oneof_decl.add(name=f"_{field.name}")
            elif random.random() < 0.3:
                self._make_map(field, message, full_name)
        if has_oneof and not any(
            each.HasField("oneof_index") and each.oneof_index == 0 for each in message.field
        ):
            message.field.add(name="last", number=50, type=Field.TYPE_BOOL, oneof_index=0, label=1)

    def _choose_type(self, field: Any, inner: list[str]) -> None:
        match self._random.randrange(10):
            case 0 if inner:
                field.type, field.type_name = Field.TYPE_MESSAGE, self._random.choice(inner)
            case 1:
                field.type, field.type_name = Field.TYPE_ENUM, ".some.shop.Colour"
            case 2:
                name = self._random.choice(WELL_KNOWN).rpartition(".")[2]
                field.type, field.type_name = Field.TYPE_MESSAGE, f".google.protobuf.{name}"
            case _:
                field.type = self._random.choice(list(TYPES.values()))

    def _make_map(self, field: Any, message: Any, full_name: str) -> None:
        name = "".join(word.capitalize() for word in field.name.split("_")) + "Entry"
        entry = message.nested_type.add(name=name)
        entry.options.map_entry = True
        key = self._random.choice(KEYS)
        entry.field.add(name="key", number=1, label=1, type=TYPES[key])
        value = entry.field.add(name="value", number=2, label=1, type=field.type)
        if field.type_name:
            value.type_name = field.type_name
        field.type, field.type_name = Field.TYPE_MESSAGE, f".{full_name}.{name}"

    def draw(self) -> Any:
        """Return a message."""
        message = self.kind()
        self._draw_into(message, 0)
        return message

    def _draw_into(self, message: Any, depth: int) -> None:
        for field in message.DESCRIPTOR.fields:
            if self._random.random() < 0.3:
                continue
            if field.message_type is not None and field.message_type.GetOptions().map_entry:
                self._draw_map(getattr(message, field.name), field.message_type, depth)
            elif field.is_repeated:
                items = getattr(message, field.name)
                for _ in range(self._random.choice([0, 1, 3, 20])):
                    if field.message_type is None:
                        items.append(self._scalar(field))
                    else:
                        self._draw_message(items.add(), depth)
            elif field.message_type is None:
                setattr(message, field.name, self._scalar(field))
            else:
                getattr(message, field.name).SetInParent()
                self._draw_message(getattr(message, field.name), depth)

    def _draw_map(self, items: Any, entry: Any, depth: int) -> None:
        key, value = entry.fields_by_name["key"], entry.fields_by_name["value"]
        for _ in range(self._random.randrange(4)):
            if value.message_type is None:
                items[self._scalar(key)] = self._scalar(value)
            else:
                self._draw_message(items[self._scalar(key)], depth)

    def _draw_message(self, message: Any, depth: int) -> None:
        random = self._random
        match message.DESCRIPTOR.name:
            case "Timestamp":
                message.seconds = random.randrange(-(10**9), 10**10)
                message.nanos = random.choice([0, 1, 5000, 7_000_000, 123456789])
            case "Duration":
                sign = random.choice([-1, 1])
                message.seconds = sign * random.randrange(10**9)
                message.nanos = sign * random.choice([0, 1, 5000, 7_000_000])
            case "FieldMask":
                message.paths.extend(random.sample(["a", "b_c", "d.e_f"], random.randrange(3)))
            case "Struct":
                message.update({"n": 1.5, "t": "text", "l": [None, True, {"inner": []}]})
            case "Value":
                message.MergeFromString(random.choice(_VALUES).SerializeToString())
            case _ if depth < 6:
                self._draw_into(message, depth + 1)

    def _scalar(self, field: Any) -> Any:
        random = self._random
        if field.enum_type is not None:
            return random.choice([0, 70, 140, 5] if self.file.syntax == "proto3" else [0, 70, 140])
        name = NAMES[field.type]
        match name:
            case "string":
                return random.choice(WORDS)
            case "bytes":
                return random.randbytes(random.randrange(50))
            case "bool":
                return random.random() < 0.5
            case "float" | "double":
                return random.choice(
                    [0.0, -1.5, 0.1, random.random() * 1e9, 1e-30, math.inf, -math.inf]
                )
        bits = 64 if name.endswith("64") else 32
        low, high = (0, 1 << bits) if name[0] in "uf" else (-(1 << bits - 1), 1 << bits - 1)
        value = random.choice([0, 1, 127, 128, low, high - 1, random.randrange(low, high)])
        return max(low, min(value, high - 1))


_VALUES = (
    struct_pb2.Value(null_value=struct_pb2.NULL_VALUE),
    struct_pb2.Value(number_value=5),
    struct_pb2.Value(string_value="five"),
    struct_pb2.Value(bool_value=False),
    struct_pb2.Value(list_value=struct_pb2.ListValue(values=[struct_pb2.Value(number_value=1)])),
)


def text_of(file: Any) -> str:
    """Return a file as a `.proto` text."""
    lines = [f'syntax = "{file.syntax}";', f"package {file.package}; // of the shop"]
    lines += [f'import "{name}";' for name in file.dependency]
    for enum in file.enum_type:
        lines.append(f"enum {enum.name} {{ option deprecated = true;")
        lines += [f"{each.name} = {each.number} [deprecated = true];" for each in enum.value]
        lines.append("}")
    for message in file.message_type:
        lines += _message_lines(message, file.syntax == "proto2")
    return "\n".join(lines)


def _message_lines(message: Any, has_labels: bool) -> list[str]:
    entries = {each.name: each for each in message.nested_type if each.options.map_entry}
    lines = [f"message {message.name} {{ /* begins */ reserved 1000 to max, 900;"]
    for nested in message.nested_type:
        if nested.name not in entries:
            lines += _message_lines(nested, has_labels)
    alone = [each for each in message.field if not _in_choice(message, each)]
    for field in alone:
        entry = entries.get(field.type_name.rpartition(".")[2])
        label = "repeated " if field.label == Field.LABEL_REPEATED else ""
        if entry is not None and field.type_name:
            kind = f"map<{_kind(entry.field[0])}, {_kind(entry.field[1])}>"
            lines.append(f"{kind} {field.name} = {field.number};")
            continue
        if not label and (has_labels or field.proto3_optional):
            label = "optional "
        lines.append(f"{label}{_kind(field)} {field.name} = {field.number} [deprecated = false];")
    chosen = [each for each in message.field if _in_choice(message, each)]
    if chosen:
        lines.append("oneof choice {")
        lines += [f"{_kind(field)} {field.name} = 0x{field.number:x};" for field in chosen]
        lines.append("}")
    return [*lines, "}"]


def _in_choice(message: Any, field: Any) -> bool:
    return field.HasField("oneof_index") and message.oneof_decl[field.oneof_index].name == "choice"


def _kind(field: Any) -> str:
    return field.type_name or NAMES[field.type]
