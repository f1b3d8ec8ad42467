"""The notation of declarations, and resulting schemas."""

from __future__ import annotations

import io
from typing import Any
from uuid import UUID

import pytest
from construct import Construct, Container, Struct

from dissector.errors import DecodeError, EncodeError
from dissector.protocol.schema import (
    Array,
    Bool,
    Bytes,
    FieldType,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    Records,
    String,
    Uint16,
    Uint32,
    Uuid,
    Versions,
    construct_of,
    message,
    split_tagged,
)
from dissector.protocol.schema import Struct as StructField

DEMO = message(900, "0-3", flexible="2+")[
    Int32("throttle_time_ms", "1+", default=5),
    Array("topics", null="1+")[
        String("name", "0-2", null="2", entity="topicName"),
        Uuid("topic_id", "3+"),
        Array("partitions", of=Int32),
    ],
    StructField("cursor", "2+", null="2+", default=None)[String("name"),],
    String("rack", "2+", tag=1, default="r1"),
    StructField("leader", "2+", tag=0)[
        Int32("leader_id", default=-1),
        Int32("leader_epoch", "3+", default=-1),
    ],
    Array("hosts", "3+", tag=2, of=String),
]


@pytest.mark.parametrize(
    ("text", "versions", "others"),
    [
        ("0+", [0, 1, 32767], [-1, 32768]),
        ("3+", [3, 4, 32767], [2]),
        ("0-12", [0, 12], [-1, 13]),
        ("4", [4], [3, 5]),
        ("0", [0], [1, -1]),
        ("10-11", [10, 11], [9, 12]),
        ("none", [], [-1, 0, 1, 32767]),
    ],
)
def test_versions(text: str, versions: list[int], others: list[int]) -> None:
    read = Versions.of(text)
    assert all(version in read for version in versions)
    assert not any(version in read for version in others)
    assert None not in read
    assert "4" not in read


def test_versions_in_order() -> None:
    assert list(Versions.of("2-4")) == [2, 3, 4]
    assert list(Versions.of("4")) == [4]
    assert list(Versions.of("none")) == []


@pytest.mark.parametrize("text", ["", "+", "a", "1-", "1-2-3"])
def test_no_versions(text: str) -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        Versions.of(text)


@pytest.mark.parametrize(
    ("field", "name"),
    [
        (Int32("throttle_time_ms"), "ThrottleTimeMs"),
        (String("name"), "Name"),
        (Array("v3_and_below_topics"), "V3AndBelowTopics"),
        (Int32("isr", kafka="ISR"), "ISR"),
    ],
)
def test_kafka_names(field: Any, name: str) -> None:
    assert field.kafka_name == name


@pytest.mark.parametrize(
    ("field", "word"),
    [
        (Bool("x"), "bool"),
        (Records("x"), "records"),
        (StructField("x")[Int8("y")], "struct"),
        (Array("x")[Int8("y")], "[]struct"),
        (Array("x", of=Int32), "[]int32"),
        (Array("x", of=String), "[]string"),
    ],
)
def test_type_words(field: Any, word: str) -> None:
    assert field.type == word


def test_all_attributes_of_declarations() -> None:
    field = String(
        "token",
        "2-5",
        null="3+",
        tag=7,
        default="x",
        ignorable=True,
        key=True,
        entity="groupId",
        classic=True,
        kafka="TOKEN",
    )
    assert (field.versions, field.null) == (Versions(2, 5), Versions(3, 32767))
    assert (field.tag, field.default, field.entity, field.kafka) == (7, "x", "groupId", "TOKEN")
    assert field.ignorable
    assert field.key
    assert field.classic


def test_a_single_child_is_accepted() -> None:
    assert [f.name for f in Array("x")[Int8("y")].fields] == ["y"]
    assert [f.name for f in message(1, "0")[Int8("y")].fields] == ["y"]


@pytest.mark.parametrize(
    ("kind", "zero"),
    [
        (Bool, False),
        (Int8, 0),
        (Int16, 0),
        (Int32, 0),
        (Int64, 0),
        (Uint16, 0),
        (Uint32, 0),
        (Float64, 0.0),
        (String, ""),
        (Bytes, b""),
        (Records, None),
        (Uuid, UUID(int=0)),
        (Array, []),
    ],
)
def test_zero_values(kind: FieldType, zero: Any) -> None:
    assert kind("x").zero(0) == zero


def test_zero_is_the_default() -> None:
    assert Int32("x", default=-1).zero(0) == -1
    assert String("x", default=None).zero(0) is None
    one = "00000000-0000-0000-0000-000000000001"
    assert Uuid("x", default=one).zero(0) == UUID(one)


def test_zero_of_a_struct_has_the_fields_of_the_version() -> None:
    leader = DEMO.fields[4]
    assert leader.zero(2) == {"leader_id": -1}
    assert leader.zero(3) == {"leader_id": -1, "leader_epoch": -1}
    assert leader.zero(3) is not leader.zero(3)
    assert isinstance(leader.zero(3), Container)


def test_split_sorts_tagged_fields_by_tag() -> None:
    plain, tagged = split_tagged(DEMO.fields, 3)
    assert [f.name for f in plain] == ["throttle_time_ms", "topics", "cursor"]
    assert [f.name for f in tagged] == ["leader", "rack", "hosts"]
    plain, tagged = split_tagged(DEMO.fields, 0)
    assert [f.name for f in plain] == ["topics"]
    assert tagged == []


def test_iteration_over_fields() -> None:
    assert [(path, f.type) for path, f in DEMO.iter_fields(3)] == [
        ("ThrottleTimeMs", "int32"),
        ("Topics", "[]struct"),
        ("Topics.TopicId", "uuid"),
        ("Topics.Partitions", "[]int32"),
        ("Cursor", "struct"),
        ("Cursor.Name", "string"),
        ("Leader", "struct"),
        ("Leader.LeaderId", "int32"),
        ("Leader.LeaderEpoch", "int32"),
        ("Rack", "string"),
        ("Hosts", "[]string"),
    ]
    assert [path for path, _ in DEMO.iter_fields(0)] == [
        "Topics",
        "Topics.Name",
        "Topics.Partitions",
    ]


TOPIC = {"name": "a", "partitions": [1]}
NOTHING = {"throttle_time_ms": 1, "topics": [], "cursor": None}
HEAD = "00000001 01 ff"

# Version, value, bytes.
CASES = [
    (0, {"topics": []}, "00000000"),
    (0, {"topics": [TOPIC]}, "00000001 000161 00000001 00000001"),
    (1, {"throttle_time_ms": 1, "topics": None}, "00000001 ffffffff"),
    (2, NOTHING | {"leader": {"leader_id": -1}, "rack": "r1"}, f"{HEAD} 00"),
    (2, NOTHING | {"leader": {"leader_id": 2}, "rack": "r1"}, f"{HEAD} 01 0005 00000002 00"),
    (2, NOTHING | {"leader": {"leader_id": -1}, "rack": ""}, f"{HEAD} 01 0101 01"),
    (
        2,
        {
            "throttle_time_ms": 1,
            "topics": [{"name": None, "partitions": None, "unknown_tags": {0: b"\7"}}],
            "cursor": {"name": "c", "unknown_tags": {300: b""}},
            "leader": {"leader_id": 1, "unknown_tags": {1: b"\1\2"}},
            "rack": "z",
            "unknown_tags": {9: b"", 2: b"\xff"},
        },
        "00000001 02 00 00 01000107 01 0263 01 ac0200"
        " 04 0009 00000001 01 01020102 0102 027a 0201ff 0900",
    ),
    (
        3,
        NOTHING
        | {"leader": {"leader_id": -1, "leader_epoch": 3}, "rack": "r1", "hosts": ["h", ""]},
        f"{HEAD} 02 0009 ffffffff 00000003 00 0204 03026801",
    ),
]


@pytest.mark.parametrize(("version", "value", "data"), CASES)
def test_both_ways(version: int, value: dict[str, Any], data: str) -> None:
    codec = DEMO.codec(version)
    encoded = bytes.fromhex(data)
    assert codec.parse(encoded) == value
    assert codec.build(value) == encoded
    assert codec.build(codec.parse(encoded)) == encoded


def test_unknown_tags_are_present_only_if_any() -> None:
    assert "unknown_tags" not in DEMO.codec(2).parse(bytes.fromhex(f"{HEAD} 00"))


def test_a_known_tag_at_its_default_is_decoded_but_not_encoded() -> None:
    """The only encoding not preserved: Kafka never produces it."""
    parsed = DEMO.codec(2).parse(bytes.fromhex(f"{HEAD} 01 0103 037231"))
    assert parsed.rack == "r1"
    assert DEMO.codec(2).build(parsed) == bytes.fromhex(f"{HEAD} 00")


def test_a_tag_of_another_version_is_unknown() -> None:
    data = bytes.fromhex(f"{HEAD} 01 0201 01")
    assert DEMO.codec(2).parse(data).unknown_tags == {2: b"\1"}
    assert DEMO.codec(3).parse(data).hosts == []


def test_defaults_when_building() -> None:
    assert DEMO.codec(1).build({"topics": []}) == bytes.fromhex("00000005 00000000")
    assert DEMO.codec(2).build({"topics": []}) == bytes.fromhex("00000005 01 ff 00")
    with pytest.raises(EncodeError, match=r"^topics: is missing$"):
        DEMO.codec(0).build({})


def test_defaults_of_absent_tags_are_independent() -> None:
    first, second = (DEMO.codec(3).parse(bytes.fromhex(f"{HEAD} 00")) for _ in range(2))
    first.hosts.append("h")
    first.leader.leader_id = 7
    assert second.hosts == []
    assert second.leader == {"leader_id": -1, "leader_epoch": -1}


def test_fields_of_other_versions_are_not_encoded() -> None:
    value = {"topics": [TOPIC | {"topic_id": UUID(int=1)}], "throttle_time_ms": 9}
    assert DEMO.codec(0).build(value) == bytes.fromhex(CASES[1][2])


@pytest.mark.parametrize(
    ("version", "data", "path", "position"),
    [
        (0, "00000001 0002 61", "topics", 0),
        (0, "00000001 000661 00000000", "topics[0].name", 4),
        (2, "00000001 01", "cursor", 5),
        (2, "00000001 01 01 0261 05", "cursor", 8),
        (2, f"{HEAD} 01 0004 00000001", "leader", 13),
        (2, f"{HEAD} 01 0006 00000001 00 00", "leader", 14),
    ],
)
def test_undecodable_bytes_are_errors(version: int, data: str, path: str, position: int) -> None:
    with pytest.raises(DecodeError) as raised:
        DEMO.codec(version).parse(bytes.fromhex(data))
    assert (raised.value.path, raised.value.position) == (path, position)


def test_codecs_are_cached() -> None:
    assert DEMO.codec(2) is DEMO.codec(2)
    assert DEMO.codec(2) is not DEMO.codec(1)


def test_a_changed_schema_has_its_own_codecs() -> None:
    DEMO.codec(1)
    other = DEMO[Int8("x"),]
    assert other.codec(1).build({"x": 1}) == b"\1"
    assert DEMO.codec(1).build({"topics": []}) != b"\1"


@pytest.mark.parametrize("version", [-1, 4, 32767])
def test_unknown_version(version: int) -> None:
    with pytest.raises(DecodeError, match=rf"version {version} is not known \(known: 0-3\)"):
        DEMO.codec(version)


def test_is_known() -> None:
    assert DEMO.versions_text == "0-3"
    assert message(1, "4").versions_text == "4"


def test_a_codec_is_a_construct() -> None:
    codec = DEMO.codec(0)
    assert isinstance(codec, Construct)
    both = Struct("first" / codec, "second" / codec)
    data = bytes.fromhex(CASES[0][2] + CASES[1][2])
    parsed = both.parse(data)
    assert parsed.second.topics == [TOPIC]
    assert both.build(parsed) == data
    stream = io.BytesIO(data)
    assert codec.parse_stream(stream) == {"topics": []}
    assert stream.tell() == 4


def test_a_classic_text_keeps_its_length_in_flexible_versions() -> None:
    for classic, data in ((True, "000161"), (False, "0261")):
        construct = construct_of(String("client_id", classic=classic), 2, flexible=True)
        assert construct.build("a") == bytes.fromhex(data)


def test_a_message_without_fields() -> None:
    empty = message(901, "0-1", flexible="1+")
    assert empty.codec(0).build({}) == b""
    assert empty.codec(0).parse(b"") == {}
    assert empty.codec(1).build({}) == b"\0"
    assert empty.codec(1).parse(b"\0") == {}
