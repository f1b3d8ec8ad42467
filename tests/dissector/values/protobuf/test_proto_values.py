from __future__ import annotations

import base64
import json
import resource
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.values.protobuf.descriptor_sets import files_of_set
from dissector.values.protobuf.proto_schema import ProtoSchema
from dissector.values.protobuf.wire_pieces import pieces
from dissector.values.value_limits import MIN_OUTPUT, SchemaProblem, ValueProblem, output_limit
from tests.corpus import fast_and_long

json_format = pytest.importorskip("google.protobuf.json_format")

from tests.dissector.values.protobuf.proto_samples import ProtoSamples, text_of  # noqa: E402

SEEDS = fast_and_long([range(60)], [range(100, 3_100)])


def read(schema: ProtoSchema, data: bytes) -> Any:
    return schema.value(schema.first, data, 0, is_exact=True)


def is_same(ours: Any, theirs: Any) -> bool:
    """Return whether values are equal; 64-bit numbers are texts in one."""
    if isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(is_same(ours[n], theirs[n]) for n in theirs)
    if isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(is_same, ours, theirs))
    if isinstance(theirs, str) and type(ours) is int:
        return str(ours) == theirs
    return type(ours) is type(theirs) and bool(ours == theirs)


def shuffled(data: bytes, seed: int) -> bytes:
    """Return a message with its fields in another order than writers put them."""
    fields = [data[each.key : each.end] for each in pieces(data, 0, len(data))]
    Random(seed).shuffle(fields)
    return b"".join(fields)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("syntax", ["proto3", "proto2"])
@pytest.mark.parametrize("seeds", SEEDS)
def test_random_messages_as_protobuf_reads_them(seeds: range, syntax: str) -> None:
    for seed in seeds:
        samples = ProtoSamples(Random(seed), syntax)
        serialized = samples.file.SerializeToString()
        forms = (text_of(samples.file), base64.b64encode(serialized).decode())
        schemas = [ProtoSchema(form) for form in forms]
        drawn = [samples.draw().SerializeToString() for _ in range(5)]
        for data in (*drawn, shuffled(drawn[0], seed), drawn[1] + drawn[2]):
            message = samples.kind.FromString(data)
            try:
                expected = json_format.MessageToDict(
                    message,
                    preserving_proto_field_name=True,
                    always_print_fields_with_no_presence=True,
                )
            except json_format.SerializeToJsonError:
                continue  # durations of two messages do not always fit each other
            for schema in schemas:
                found = schema.value(schema.first, data, 0, is_exact=True)
                assert is_same(found, expected), (seed, found, expected)
                assert json_format.Parse(json.dumps(found), samples.kind()) == message


PARTS = """
syntax = "proto2";
package shop;
import "google/protobuf/any.proto";
option java_package = "com.shop"; option (custom) = { a: 1 b { c: "}" } };
message Order {
  optional int32 id = 1 [default = -5, json_name = "number"];
  repeated group Line = 2 { required string sku = 1; optional int64 count = 2 [packed = true]; }
  extensions 100 to 199;
  oneof payment { string card = 3; Order nested = 4; }
  optional .google.protobuf.Any any = 5;
  repeated sint32 numbers = 6;
  optional Order again = 7;
  message message { optional bool message = 1; }
  optional message message = 8;
  enum Kind { option allow_alias = true; FIRST = 0; SAME = 0; NEGATIVE = -1; }
  optional Kind kind = 9;
  optional float rate = 10;
}
extend Order { optional string note = 100; }
message Other { extend Order { repeated Other others = 101; } }
service Orders { rpc Get (Order) returns (stream Order) { option (http) = { get: "/x" }; } }
"""


@pytest.mark.parametrize(
    ("data", "value"),
    [
        ("0805", {"id": 5}),
        ("08fbffffffffffffffff01", {"id": -5}),
        ("130a01611001141314", {"numbers": [], "Line": 2}),
        ("1a0161 2200", {"nested": {}}),
        ("2200 1a0161", {"card": "a"}),
        ("3a020805 3a031a0161", {"again": {"id": 5, "card": "a"}}),
        ("3203010204 3006", {"numbers": [-1, 1, 2, 3]}),
        ("4202 0801", {"message": {"message": True}}),
        ("48ffffffffffffffffff01 48", None),
        ("48ffffffffffffffffff01", {"kind": "NEGATIVE"}),
        ("4800", {"kind": "FIRST"}),
        ("4805", {"kind": 5}),
        ("55cdcccc3d", {"rate": 0.1}),
        ("a2060161", {"[shop.note]": "a"}),
        ("aa0600", {"[shop.Other.others]": [{}]}),
        (
            "2a 17 0a11 747970652e782f73686f702e4f72646572 1202 0805",
            {
                "any": {
                    "@type": "type.x/shop.Order",
                    "id": 5,
                    "numbers": [],
                    "line": [],
                    "[shop.Other.others]": [],
                }
            },
        ),
        ("2a 06 0a01 78 1201 ff", {"any": {"@type": "x", "value": "/w=="}}),
        (
            "f00105 f00106 fa010161 fd0101000000 f1010100000000000000",
            {"30": [5, 6, 1], "31": ["a", 1]},
        ),
    ],
)
def test_parts_of_the_language(data: str, value: dict[str, Any] | None) -> None:
    schema = ProtoSchema(PARTS)
    message = schema.named("Order")
    raw = bytes.fromhex(data)
    if value is None:
        with pytest.raises(ValueProblem):
            schema.value(message, raw, 0, is_exact=False)
        return
    found = schema.value(message, raw, 0, is_exact=False)
    lists = {"line": [], "numbers": [], "[shop.Other.others]": []}
    value = {**lists, **value}
    if value.pop("Line", None):
        value["line"] = [{"sku": "a", "count": 1}, {}]
    _with_lists(value, lists)
    assert found == value


def _with_lists(value: Any, lists: dict[str, Any]) -> None:
    for name in ("nested", "again"):
        if name in value:
            value[name] = {**lists, **value[name]}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("message M { int32 a = 1; ", "ends inside"),
        ("message M { int32 a = 0; }", "line 1 of the schema has '0'"),
        ("\nmessage M { int32 = 1; }", "line 2 of the schema has '='"),
        ("message M { int32 a = 1 }", "has '}'"),
        ("message M { int32 a = 99999999999999999999999; }", "of the schema has"),
        ("hello", "has 'hello'"),
        ("message M { \x00 }", "has '"),
        ("message M {" * 100, "nests too deep"),
        ("x" * (1 << 20 | 1), "more than"),
        ("/* open", r"has '\*'"),
        ("", "no message"),
        ("message M { Missing a = 1; }", "unknown type 'Missing' of the field 'a'"),
        ("message M { int32 a = 1; string a = 2; }", "two fields 'a'"),
        (f"message M {{ {'x' * 2000} a = 1; }}", "a name of more than"),
        ("CgFh", "no message"),  # a descriptor
        ("////", "not a descriptor"),
    ],
)
def test_schemas_that_are_none(text: str, reason: str) -> None:
    def read_empty() -> None:
        schema = ProtoSchema(text)
        schema.value(schema.first, b"", 0, is_exact=False)

    with pytest.raises(SchemaProblem, match=reason):
        read_empty()


def test_imported_files_and_chosen_messages() -> None:
    imported = 'syntax = "proto3"; package common; message User { int32 id = 1; }'
    text = """
    syntax = "proto3"; package shop; import "user.proto";
    message B { message C { bool c = 1; } message A { map<string, B> m = 1; } common.User u = 1; }
    message Last { B.A a = 1; }
    """
    schema = ProtoSchema(text, [imported])
    assert read(schema, bytes.fromhex("0a020805")) == {"u": {"id": 5}}
    assert schema.named("User").full_name == "common.User"
    names = {
        data: schema.at_indexes(bytes.fromhex(data), 0)[0].full_name
        for data in ("00", "0200", "0202", "040002", "06000200")
    }
    assert names == {
        "00": "shop.B",
        "0200": "shop.B",
        "0202": "shop.Last",
        "040002": "shop.B.A",
        "06000200": "shop.B.A.MEntry",
    }
    assert [schema.at_sorted_index(bytes([at]), 0)[0].full_name for at in range(5)] == [
        "shop.B",
        "shop.B.A",
        "shop.B.A.MEntry",
        "shop.B.C",
        "shop.Last",
    ]
    ref = b"\x0b\x0a\x09shop.Last"
    assert schema.at_ref(ref + b"\x0a\x00", 0) == (schema.named("shop.Last"), len(ref))
    assert schema.at_ref(b"\x0a\x00", 0) == (schema.first, 0)
    for data in ("", "04", "0204", "01", "ff", "fe01"):
        with pytest.raises(ValueProblem):
            schema.at_indexes(bytes.fromhex(data), 0)
    for name in ("Nobody", "C.c", ""):
        with pytest.raises(SchemaProblem, match="no message"):
            schema.named(name)


def test_descriptor_sets() -> None:
    from google.protobuf import descriptor_pb2, timestamp_pb2

    samples = ProtoSamples(Random(3))
    stamp = descriptor_pb2.FileDescriptorProto()
    timestamp_pb2.DESCRIPTOR.CopyToProto(stamp)
    whole = descriptor_pb2.FileDescriptorSet(file=[stamp, samples.file])
    *imported, main = files_of_set(whole.SerializeToString())
    schema = ProtoSchema(main, imported)
    assert schema.first.full_name == "some.shop.Order"
    assert schema.named("Timestamp").full_name == "google.protobuf.Timestamp"
    for data in (b"\xff", b"\x0a\x05\x0a", b"\x0a\x02\x22\xff"):
        with pytest.raises(SchemaProblem):
            files_of_set(data)


def test_a_map_that_a_descriptor_declares_as_one_entry() -> None:
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto

    samples = ProtoSamples(Random(0))
    message = samples.file.message_type[0]
    del message.field[:], message.oneof_decl[:], message.nested_type[:]
    entry = message.nested_type.add(name="MEntry")
    entry.options.map_entry = True
    for number, name in enumerate(("key", "value"), 1):
        entry.field.add(name=name, number=number, label=1, type=FieldDescriptorProto.TYPE_INT32)
    kind = FieldDescriptorProto.TYPE_MESSAGE
    path = ".some.shop.Order.MEntry"
    message.oneof_decl.add(name="choice")
    message.field.add(name="m", number=1, label=1, type=kind, type_name=path, oneof_index=0)
    schema = ProtoSchema(base64.b64encode(samples.file.SerializeToString()).decode())
    assert read(schema, bytes.fromhex("0a04 0805 1006 0a02 0807")) == {"m": {"5": 6, "7": 0}}


MANY = "message M {" + " ".join(f"int32 f{at} = {at + 1};" for at in range(3000)) + " %s }"


@pytest.mark.parametrize(
    ("more", "data"),
    [
        ("repeated M m = 5000;", bytes.fromhex("c2b80200") * 2000),
        ("enum E { E0 = 0; %s = 1; } repeated E e = 5000;" % ("x" * 900), None),
    ],
)
def test_outputs_are_limited(more: str, data: bytes | None) -> None:
    schema = ProtoSchema('syntax = "proto3"; ' + MANY % more)
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if data is None:
        data = bytes.fromhex("c2b802") + b"\xd0\x0f" + b"\x01" * 2000
    with pytest.raises(ValueProblem, match="more output than its size allows"):
        read(schema, data)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < used + 100_000


def test_messages_inside_themselves_are_read_up_to_a_depth() -> None:
    schema = ProtoSchema('syntax = "proto3"; message L { L next = 1; }')
    assert json.dumps(read(schema, _nested(90))).count("next") == 90
    group = ProtoSchema('syntax = "proto2"; message L { optional group L = 1 { } }')
    with pytest.raises(ValueProblem, match="nested deeper"):
        read(group, b"\x13" * 5000)
    with pytest.raises(ValueProblem, match="nested deeper"):
        read(ProtoSchema("message L { optional L next = 1; }"), _nested(200))


def _nested(levels: int) -> bytes:
    data = b""
    for _ in range(levels):
        size = len(data)
        head = bytes([size]) if size < 128 else bytes([size & 127 | 128, size >> 7])
        data = b"\x0a" + head + data
    return data


WORDS = (
    *("message", "M", "{", "}", "int32", "a", "=", "1", ";", "repeated", "string", "map", "<", ">"),
    *(",", "enum", "oneof", "extend", "group", "google.protobuf.Any", "Value", ".", "option", "["),
    *("]", "(", ")", '"x"', "google.protobuf.Struct", "b", "2", "M.M", "syntax", '"proto3"', "key"),
)


@given(
    words=st.lists(st.sampled_from(WORDS), max_size=40),
    data=st.binary(max_size=60),
    raw=st.binary(max_size=60),
)
def test_hostile_schemas_and_values_raise_problems_only(
    words: list[str], data: bytes, raw: bytes
) -> None:
    hostile(" ".join(words), data)
    hostile(f"message M {{ {' '.join(words)} }}", data)
    hostile(base64.b64encode(raw).decode(), data)


def hostile(text: str, data: bytes) -> None:
    """Read a value by a schema, and write it; there is no error but `ValueProblem`."""
    try:
        schema = ProtoSchema(text)
        value = schema.value(schema.first, data, 0, is_exact=False)
    except ValueProblem:
        return
    assert len(json.dumps(value)) <= output_limit(len(data)) + MIN_OUTPUT


@pytest.mark.long
def test_many_hostile_values_and_descriptors() -> None:
    """Random schemas and their values, right but for some bytes."""
    random = Random(1)
    for _ in range(2_000):
        samples = ProtoSamples(random)
        descriptor = samples.file.SerializeToString()
        schema = ProtoSchema(base64.b64encode(descriptor).decode())
        good = samples.draw().SerializeToString()
        for _ in range(50):
            data = _damaged(random, good)
            try:
                value = schema.value(schema.first, data, 0, is_exact=False)
                json.dumps(value)
            except ValueProblem:
                continue
        for _ in range(5):
            hostile(base64.b64encode(_damaged(random, descriptor)).decode(), good)


def _damaged(random: Random, good: bytes) -> bytes:
    data = bytearray(good)
    for _ in range(random.randrange(1, 4)):
        if data:
            data[random.randrange(len(data))] = random.choice([0, 1, 2, 0x7F, 0xFF, 0x0A])
    return bytes(data[: random.choice([len(data), random.randrange(99)])])
