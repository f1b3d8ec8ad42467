"""
Types that are declared everywhere, and have a JSON form of their own.

Source: https://protobuf.dev/reference/protobuf/google.protobuf/ and
https://protobuf.dev/programming-guides/json/; googleapis, google/type;
confluentinc/schema-registry, confluent/type/decimal.proto.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from dissector.values.protobuf.proto_text import parse_proto
from dissector.values.protobuf.wire_format import RAW, ProtoRoom

WRAPPED = {
    "Double": "double",
    "Float": "float",
    "Int64": "int64",
    "UInt64": "uint64",
    "Int32": "int32",
    "UInt32": "uint32",
    "Bool": "bool",
    "String": "string",
    "Bytes": "bytes",
}

_GOOGLE_PROTOBUF = """
syntax = "proto3"; package google.protobuf;
message Any { string type_url = 1; bytes value = 2; }
message Timestamp { int64 seconds = 1; int32 nanos = 2; }
message Duration { int64 seconds = 1; int32 nanos = 2; }
message FieldMask { repeated string paths = 1; }
message Empty { }
message Struct { map<string, Value> fields = 1; }
message ListValue { repeated Value values = 1; }
enum NullValue { NULL_VALUE = 0; }
message Value {
  oneof kind {
    NullValue null_value = 1; double number_value = 2; string string_value = 3;
    bool bool_value = 4; Struct struct_value = 5; ListValue list_value = 6;
  }
}
""" + "\n".join(f"message {name}Value {{ {kind} value = 1; }}" for name, kind in WRAPPED.items())

_GOOGLE_TYPE = """
syntax = "proto3"; package google.type;
message Date { int32 year = 1; int32 month = 2; int32 day = 3; }
message TimeOfDay { int32 hours = 1; int32 minutes = 2; int32 seconds = 3; int32 nanos = 4; }
message Money { string currency_code = 1; int64 units = 2; int32 nanos = 3; }
message LatLng { double latitude = 1; double longitude = 2; }
message Decimal { string value = 1; }
message Interval {
  google.protobuf.Timestamp start_time = 1; google.protobuf.Timestamp end_time = 2;
}
message PhoneNumber {
  message ShortCode { string region_code = 1; string number = 2; }
  oneof kind { string e164_number = 1; ShortCode short_code = 2; }
  string extension = 3;
}
message TimeZone { string id = 1; string version = 2; }
message DateTime {
  int32 year = 1; int32 month = 2; int32 day = 3; int32 hours = 4; int32 minutes = 5;
  int32 seconds = 6; int32 nanos = 7;
  oneof time_offset { google.protobuf.Duration utc_offset = 8; TimeZone time_zone = 9; }
}
enum DayOfWeek {
  DAY_OF_WEEK_UNSPECIFIED = 0; MONDAY = 1; TUESDAY = 2; WEDNESDAY = 3; THURSDAY = 4; FRIDAY = 5;
  SATURDAY = 6; SUNDAY = 7;
}
"""

_CONFLUENT_TYPE = """
syntax = "proto3"; package confluent.type;
message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }
"""

KNOWN_FILES = tuple(map(parse_proto, (_GOOGLE_PROTOBUF, _GOOGLE_TYPE, _CONFLUENT_TYPE)))

ANY = "google.protobuf.Any"
FIELD_MASK = "google.protobuf.FieldMask"
KNOWN_FILES[0].messages[0].fields[1].type_name = RAW

_EPOCH = datetime(1970, 1, 1)
_NANOS = 10**9
_MAX_DURATION = 315_576_000_000


def _fraction(nanos: int) -> str:
    """Return the digits behind the point: none, 3, 6 or 9."""
    if not nanos:
        return ""
    digits = f"{nanos:09}"
    while digits.endswith("000"):
        digits = digits[:-3]
    return f".{digits}"


def _timestamp(values: dict[str, Any], room: ProtoRoom) -> Any:
    seconds, nanos = values["seconds"], values["nanos"]
    if not 0 <= nanos < _NANOS:
        return values
    try:
        return f"{(_EPOCH + timedelta(seconds=seconds)).isoformat()}{_fraction(nanos)}Z"
    except OverflowError:
        return values


def _duration(values: dict[str, Any], room: ProtoRoom) -> Any:
    seconds, nanos = values["seconds"], values["nanos"]
    is_mixed = seconds and nanos and (seconds < 0) != (nanos < 0)
    if is_mixed or abs(nanos) >= _NANOS or abs(seconds) > _MAX_DURATION:
        return values
    sign = "-" if seconds < 0 or nanos < 0 else ""
    return f"{sign}{abs(seconds)}{_fraction(abs(nanos))}s"


def _wrapped(values: dict[str, Any], room: ProtoRoom) -> Any:
    return values["value"]


def _field_mask(values: dict[str, Any], room: ProtoRoom) -> str:
    return ",".join(map(_camel_case, values["paths"]))


def _camel_case(path: str) -> str:
    first, *words = path.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in words)


def _struct(values: dict[str, Any], room: ProtoRoom) -> Any:
    return values["fields"]


def _list_value(values: dict[str, Any], room: ProtoRoom) -> Any:
    return values["values"]


def _value(values: dict[str, Any], room: ProtoRoom) -> Any:
    values.pop("null_value", None)
    return next(iter(values.values()), None)


FINISHES: Mapping[str, Callable[[dict[str, Any], ProtoRoom], Any]] = {
    f"google.protobuf.{name}": finish
    for name, finish in {
        "Timestamp": _timestamp,
        "Duration": _duration,
        "FieldMask": _field_mask,
        "Struct": _struct,
        "ListValue": _list_value,
        "Value": _value,
        **{f"{name}Value": _wrapped for name in WRAPPED},
    }.items()
}
"""What a message with a JSON form of its own is, by its full name."""

CONTENT_FIELDS: Mapping[tuple[str, type], str] = {
    ("google.protobuf.Struct", dict): "fields",
    ("google.protobuf.ListValue", list): "values",
    ("google.protobuf.Value", dict): "struct_value",
    ("google.protobuf.Value", list): "list_value",
}
"""The field that is the form of its message, by the name of this and the kind of the form."""
