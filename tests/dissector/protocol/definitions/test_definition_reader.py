"""Message definitions are read into the notation of the declarations."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dissector.errors import DefinitionError
from dissector.protocol.definitions.definition_reader import Definition, read_definition, snake_case
from dissector.protocol.definitions.structure import same_structure, structure
from dissector.protocol.schema import (
    Array,
    Bool,
    Bytes,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    Records,
    String,
    Struct,
    Uint16,
    Uint32,
    Uuid,
    Versions,
    message,
)

FULL = b"""
// Licensed to nobody; "quoted" // twice
{
  "apiKey": 600, "type": "request", "listeners": ["broker", "controller"],
  "name": "VendorRequest", /* a comment
  of two lines */
  "latestVersionUnstable": true,
  "validVersions": "0-3", "flexibleVersions": "2+",
  "fields": [
    { "name": "Url", "type": "string", "versions": "0+", "default": "http://x",
      "entityType": "topicName", "ignorable": true, "about": "has // no comment" },
    { "name": "IsISR", "type": "bool", "versions": "0+", "default": "true" },
    { "name": "A", "type": "int8", "versions": "0+", "default": -1 },
    { "name": "B", "type": "int16", "versions": "1-2" },
    { "name": "C", "type": "int32", "versions": "3", "default": "0x7fffffff" },
    { "name": "D", "type": "int64", "versions": "0+" },
    { "name": "E", "type": "uint16", "versions": "0+" },
    { "name": "F", "type": "uint32", "versions": "0+" },
    { "name": "G", "type": "float64", "versions": "0+", "default": "1.5" },
    { "name": "H", "type": "bytes", "versions": "0+", "nullableVersions": "1+",
      "default": "null", "zeroCopy": true },
    { "name": "I", "type": "records", "versions": "0+", "nullableVersions": "0+" },
    { "name": "J", "type": "uuid", "versions": "0+" },
    { "name": "Ids", "type": "[]int32", "versions": "0+", "nullableVersions": "2+" },
    { "name": "Topics", "type": "[]Topic", "versions": "0+", "fields": [
      { "name": "Name", "type": "string", "versions": "0+", "mapKey": true },
      { "name": "Node", "type": "Point", "versions": "1+" }
    ]},
    { "name": "Late", "type": "Point", "versions": "0+", "taggedVersions": "2+", "tag": "1",
      "nullableVersions": "2+", "default": "null" },
    { "name": "Tagged", "type": "int32", "versions": "2+", "taggedVersions": "2+", "tag": 0 },
    { "name": "Plain", "type": "string", "versions": "0+", "flexibleVersions": "none" }
  ],
  "commonStructs": [
    { "name": "Point", "versions": "0+", "fields": [
      { "name": "X", "type": "int16", "versions": "0+" },
      { "name": "Y", "type": "int16", "versions": "2+" }
    ]}
  ]
}
"""

POINT = Int16("x"), Int16("y", "2+")

EXPECTED = message(600, "0-3", flexible="2+")[
    String("url", default="http://x", ignorable=True, entity="topicName"),
    Bool("is_isr", default=True, kafka="IsISR"),
    Int8("a", default=-1),
    Int16("b", "1-2"),
    Int32("c", "3", default=0x7FFFFFFF),
    Int64("d"),
    Uint16("e"),
    Uint32("f"),
    Float64("g", default=1.5),
    Bytes("h", null="1+", default=None),
    Records("i", null="0+"),
    Uuid("j"),
    Array("ids", of=Int32, null="2+"),
    Array("topics")[
        String("name", key=True),
        Struct("node", "1+")[POINT],
    ],
    Struct("late", "0-1", null="2+", default=None)[POINT],
    Struct("late", "2+", null="2+", default=None, tag=1)[POINT],
    Int32("tagged", "2+", tag=0),
    String("plain", classic=True),
]


def defined(*fields: dict[str, Any], **more: Any) -> Definition:
    """Return a request with some fields."""
    spec = {
        "apiKey": 600,
        "type": "request",
        "name": "VendorRequest",
        "validVersions": "0-1",
        "flexibleVersions": "none",
        "fields": list(fields),
        **more,
    }
    return read_definition(json.dumps(spec).encode())


def field(name: str = "X", type: str = "int32", **more: Any) -> dict[str, Any]:
    return {"name": name, "type": type, "versions": "0+", **more}


def test_every_attribute_of_definitions() -> None:
    read = read_definition(FULL)
    assert read.schema.fields == EXPECTED.fields
    assert (read.schema.key, read.schema.versions) == (600, Versions(0, 3))
    assert read.schema.flexible == EXPECTED.flexible
    assert (read.name, read.kind, read.unstable) == ("VendorRequest", "request", True)
    assert read.listeners == ("broker", "controller")


def test_a_defined_message_has_codecs_like_a_declared_one() -> None:
    read = read_definition(FULL).schema
    for version in read.versions:
        body = {each.name: each.zero(version) for each in EXPECTED.fields}
        body["late"] = {"x": 1, "y": 2}
        assert read.codec(version).build(body) == EXPECTED.codec(version).build(body)
        assert same_structure(read, EXPECTED, version)


def test_a_removed_api_has_no_versions() -> None:
    read = defined(validVersions="none")
    assert list(read.schema.versions) == []


@pytest.mark.parametrize(
    ("kafka", "ours"),
    [
        ("TopicId", "topic_id"),
        ("leaderEpoch", "leader_epoch"),
        ("isKRaftController", "is_k_raft_controller"),
        ("ISR", "isr"),
        ("Http2Port", "http2_port"),
    ],
)
def test_names(kafka: str, ours: str) -> None:
    assert snake_case(kafka) == ours


def test_structures_differ_by_their_encoding() -> None:
    one = defined(field(), field("Y")).schema
    assert same_structure(one, defined(field(about="!", ignorable=True), field("Y")).schema, 0)
    others = [
        defined(field("Y"), field()),
        defined(field(), field("Y", "int64")),
        defined(field()),
        defined(field(), field("Y"), flexibleVersions="0+"),
    ]
    assert [same_structure(one, other.schema, 0) for other in others] == [False] * 4
    assert structure(one, 0) == structure(one, 1)
    assert not same_structure(one, one, 2)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\xff", "byte 0: not UTF-8"),
        (b'{\n"a": ,}', "line 2 column 6: not JSON: Expecting value"),
        (b"//\n//\n{,", "line 3 column 2: not JSON"),
        (b"[]", "not a message definition"),
        (b"[" * 100_000, "nested too deep"),
        (b"{}", "'name' is missing"),
        (b'{"name": "X", "type": "letter"}', "'letter' is not a type of message"),
    ],
)
def test_files_without_a_definition(content: bytes, said: str) -> None:
    with pytest.raises(DefinitionError) as error:
        read_definition(content)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ([field(type="int33")], "VendorRequest.X: int33 is not a type"),
        ([field(type="[][]int8")], "VendorRequest.X: [][]int8 is not a type"),
        ([field(type="Point")], "VendorRequest.X: no struct is named Point"),
        ([field(type="[]P", fields=[field("Y", "text")])], "VendorRequest.X.Y: text is not a type"),
        ([field(default="x")], "VendorRequest.X: default 'x' does not fit int32"),
        ([field(type="int8", default=128)], "default 128 does not fit int8"),
        ([field(type="[]int8", default="1")], "default '1' does not fit []int8"),
        ([field(nullableVersions="0+")], "int32 can't be null"),
        ([field(versions="2+-")], "versions '2+-' is not a version range"),
        ([field(versions="3-2")], "versions '3-2' ends before it begins"),
        ([{"name": "X", "type": "int8"}], "VendorRequest.X: versions None is not a version range"),
        ([field(tag=1)], "tag and taggedVersions must occur together"),
        ([field(tag="a", taggedVersions="0+")], "tag 'a' is not a non-negative number"),
        ([field(), field(type="int8")], "VendorRequest.X: X has the same name or tag in version 0"),
        ([field("a.b")], "not a valid field name"),
        (["X"], "VendorRequest: a JSON object is expected"),
    ],
)
def test_errors_in_a_definition_name_the_field(fields: Any, said: str) -> None:
    with pytest.raises(DefinitionError) as error:
        defined(*fields)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"apiKey": None}, "a request must have an apiKey"),
        ({"apiKey": 40_000}, "apiKey 40000 is above 32767"),
        ({"validVersions": "0+"}, "validVersions must not exceed 1000"),
        ({"flexibleVersions": None}, "flexibleVersions None is not a version range"),
        ({"fields": {}}, "'fields' is not a list"),
    ],
)
def test_errors_of_a_message_definition(more: Any, said: str) -> None:
    with pytest.raises(DefinitionError) as error:
        defined(**more)
    assert said in str(error.value)


def common(name: str, *fields: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "versions": "0+", "fields": list(fields)}


def test_a_recursive_struct() -> None:
    structs = [
        common("Tree", field("Left", "Node")),
        common("Node", field("Children", "[]Tree")),
    ]
    with pytest.raises(DefinitionError, match="Tree > Node > Tree"):
        defined(field(type="Tree"), commonStructs=structs)


def test_endlessly_nested_structs() -> None:
    structs = [common(f"S{n}", *(field(f"X{i}", f"S{n + 1}") for i in range(4))) for n in range(20)]
    structs.append(common("S20", field()))
    with pytest.raises(DefinitionError, match="more than 10,000 fields"):
        defined(commonStructs=structs)
    nested = field()
    for _ in range(40):
        nested = field(type="S", fields=[nested])
    with pytest.raises(DefinitionError, match="nested deeper"):
        defined(nested)


def test_two_common_structs_of_one_name() -> None:
    with pytest.raises(DefinitionError, match="two common structs are named P"):
        defined(commonStructs=[common("P"), common("P")])
