"""
Descriptor sets: what `protoc --descriptor_set_out` writes, and a file's descriptor in a registry.

They are messages themselves, which our own reader of messages reads by the declaration below.

Source: protobuf, src/google/protobuf/descriptor.proto
"""

from __future__ import annotations

from base64 import b64decode
from typing import Any

from dissector.values.protobuf.proto_declarations import (
    Extension,
    ProtoEnum,
    ProtoField,
    ProtoFile,
    ProtoMessage,
    joined,
)
from dissector.values.protobuf.proto_text import MAX_FIELD_NUMBER, parse_proto
from dissector.values.protobuf.type_pool import TypePool
from dissector.values.value_limits import MAX_SCHEMA_DEPTH, SchemaProblem, ValueProblem

_DECLARATION = """
syntax = "proto2";
message Set { repeated bytes file = 1; }
message File {
  optional string name = 1; optional string package = 2; repeated string dependency = 3;
  repeated Message message_type = 4; repeated Enum enum_type = 5; repeated Field extension = 7;
  optional Options options = 8; optional string syntax = 12; optional int32 edition = 14;
}
message Message {
  optional string name = 1; repeated Field field = 2; repeated Message nested_type = 3;
  repeated Enum enum_type = 4; repeated Field extension = 6; optional Options options = 7;
  repeated Oneof oneof_decl = 8;
}
message Field {
  optional string name = 1; optional string extendee = 2; optional int32 number = 3;
  optional int32 label = 4; optional int32 type = 5; optional string type_name = 6;
  optional Options options = 8; optional int32 oneof_index = 9; optional bool proto3_optional = 17;
}
message Oneof { optional string name = 1; }
message Enum { optional string name = 1; repeated Number value = 2; }
message Number { optional string name = 1; optional int32 number = 2; }
message Options {
  optional bool map_entry = 7; optional Features file_features = 50;
  optional Features features = 21; optional Features message_features = 12;
}
message Features { optional int32 field_presence = 1; optional int32 message_encoding = 5; }
"""

_pool = TypePool([parse_proto(_DECLARATION)])

_TYPES = (
    *("", "double", "float", "int64", "uint64", "int32", "fixed64", "fixed32", "bool", "string"),
    *("", "", "bytes", "uint32", "", "sfixed32", "sfixed64", "sint32", "sint64"),
)
_GROUP = 10
_REPEATED = 3
_IMPLICIT = 2
_DELIMITED = 2


def files_of_set(data: bytes) -> list[str]:
    """
    Return the descriptors of the files in a descriptor set, each in base64.

    Raises:
        SchemaProblem: It is none.
    """
    files: list[str] = _read("Set", data)["file"]
    for each in files:
        parse_file_descriptor(each)
    return files


def parse_file_descriptor(text: str) -> ProtoFile:
    """
    Return the file of a descriptor in base64.

    Raises:
        SchemaProblem: It is none.
    """
    return _file(_read("File", b64decode(text)))


def _read(name: str, data: bytes) -> Any:
    try:
        return _pool.read(_pool.messages[name], data, 0)[0]
    except ValueProblem as problem:
        raise SchemaProblem(f"not a descriptor: {problem}") from None


def _file(found: dict[str, Any]) -> ProtoFile:
    features = found.get("options", {}).get("file_features", {})
    is_implicit = found.get("syntax") == "proto3" or features.get("field_presence") == _IMPLICIT
    file = ProtoFile(found.get("package", ""), found["dependency"], is_implicit=is_implicit)
    file.messages = [_message(each, file, file.package, 0) for each in found["message_type"]]
    file.enums = [_enum(each, file.package) for each in found["enum_type"]]
    _extensions(found, file, file.package)
    return file


def _extensions(found: dict[str, Any], file: ProtoFile, scope: str) -> None:
    for each in found["extension"]:
        field = _field(each, file, [])
        field.name, field.has_presence = f"[{joined(scope, field.name)}]", True
        file.extensions.append(Extension(each.get("extendee", ""), scope, field))


def _message(found: dict[str, Any], file: ProtoFile, scope: str, depth: int) -> ProtoMessage:
    if depth > MAX_SCHEMA_DEPTH:
        raise SchemaProblem("the schema nests too deep")
    message = ProtoMessage(joined(scope, found.get("name", "")))
    message.is_map_entry = found.get("options", {}).get("map_entry", False)
    oneofs = [each.get("name", "") for each in found["oneof_decl"]]
    message.fields = [_field(each, file, oneofs) for each in found["field"]]
    for field in message.fields:
        field.has_presence &= not message.is_map_entry
    inner = message.full_name
    message.messages = [_message(each, file, inner, depth + 1) for each in found["nested_type"]]
    message.enums = [_enum(each, inner) for each in found["enum_type"]]
    _extensions(found, file, inner)
    return message


def _field(found: dict[str, Any], file: ProtoFile, oneofs: list[str]) -> ProtoField:
    number, kind = found.get("number", 0), found.get("type", 0)
    if not 0 < number <= MAX_FIELD_NUMBER or not 0 < kind < len(_TYPES):
        raise SchemaProblem(f"field {found.get('name', '')[:40]!r} has no number or type")
    features = found.get("options", {}).get("features", {})
    index = found.get("oneof_index", -1)
    has_presence = not file.is_implicit or index >= 0
    if "field_presence" in features:
        has_presence = features["field_presence"] != _IMPLICIT
    is_alone = found.get("proto3_optional", False) or not 0 <= index < len(oneofs)
    return ProtoField(
        found.get("name", ""),
        number,
        _TYPES[kind] or found.get("type_name", ""),
        is_repeated=found.get("label") == _REPEATED,
        has_presence=has_presence,
        oneof="" if is_alone else oneofs[index],
        is_group=kind == _GROUP or features.get("message_encoding") == _DELIMITED,
    )


def _enum(found: dict[str, Any], scope: str) -> ProtoEnum:
    enum = ProtoEnum(joined(scope, found.get("name", "")))
    for each in found["value"]:
        name = each.get("name", "")
        enum.default = enum.default if enum.names else name
        enum.names.setdefault(each.get("number", 0), name)
    return enum
