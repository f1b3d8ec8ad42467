"""Where the parts of decoded values are in their bytes."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.values.avro.avro_schema import AvroSchema
from dissector.values.json_places import located_json
from dissector.values.located_value import MAX_PARTS, LocatedValue
from dissector.values.protobuf.proto_schema import ProtoSchema
from dissector.values.schemas.schema_store import SchemaStore
from dissector.values.topic_formats import TopicFormats
from dissector.values.value_reader import ValueReader
from tests.dissector.values.avro.avro_samples import Samples


def walk(part: LocatedValue) -> Iterator[LocatedValue]:
    yield part
    for _, each in part.members:
        assert part.start <= each.start <= each.end <= part.end
        yield from walk(each)


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(value=ANY_JSON, indent=st.sampled_from([None, 2]), is_ascii=st.booleans())
def test_each_part_of_a_json_text_is_its_own_text(
    value: object, indent: int, is_ascii: bool
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=is_ascii, allow_nan=True)
    if "Infinity" in text:
        return
    data = b"head" + text.encode("utf-8", "surrogatepass" if is_ascii else "replace")
    found = located_json(data, 4)
    assert found is not None
    assert found.value == json.loads(data[4:])
    for part in walk(found):
        assert json.loads(data[part.start : part.end]) == part.value


@pytest.mark.long
def test_too_many_parts_have_no_places() -> None:
    items = MAX_PARTS + 1
    assert located_json(b"[" + b"1," * items + b"1]") is None
    array = AvroSchema('{"type": "array", "items": "boolean"}')
    data = bytes([0x80 | (2 * items & 0x7F), 0x80 | (2 * items >> 7 & 0x7F), 2 * items >> 14])
    data += bytes(items + 1)
    assert len(array.value(data)) == items
    assert array.located(data, 0) is None


def test_parts_of_avro_values() -> None:
    fastavro = pytest.importorskip("fastavro")
    for seed in range(40):
        samples = Samples(Random(seed))
        schema = AvroSchema(json.dumps(samples.schema))
        for _ in range(3):
            out = io.BytesIO()
            value, expected = samples.draw()
            fastavro.schemaless_writer(out, fastavro.parse_schema(samples.schema), value)
            found = schema.located(b"head" + out.getvalue(), 4)
            assert found is not None
            assert (found.value, found.start, found.end) == (expected, 4, 4 + out.tell())
            for part in walk(found):
                if isinstance(part.value, dict) and part.members:
                    assert {name: each.value for name, each in part.members} == part.value


@pytest.mark.thinned(2)
@pytest.mark.parametrize("syntax", ["proto3", "proto2"])
def test_parts_of_protobuf_messages(syntax: str) -> None:
    """Cut out of its message, each field alone decodes to itself."""
    pytest.importorskip("google.protobuf")
    from tests.dissector.values.protobuf.proto_samples import ProtoSamples, text_of

    for seed in range(60):
        samples = ProtoSamples(Random(seed), syntax)
        schema = ProtoSchema(text_of(samples.file))
        for _ in range(3):
            data = b"head" + samples.draw().SerializeToString()
            found = schema.located(schema.first, data, 4)
            assert found is not None
            assert found.value == schema.value(schema.first, data, 4, is_exact=True)
            assert (found.start, found.end) == (4, len(data))
            for part in walk(found):
                if isinstance(part.value, dict) and part.members:
                    assert {name: each.value for name, each in part.members} == part.value
                if isinstance(part.value, list):
                    assert [each.value for _, each in part.members] == part.value
            alone = samples.kind()
            for name, part in found.members:
                alone.MergeFromString(data[part.start : part.end])
                one = schema.value(schema.first, data[part.start : part.end], 0, is_exact=False)
                assert one[name] == part.value
            assert alone.SerializeToString(deterministic=True) == (
                samples.kind.FromString(data[4:]).SerializeToString(deterministic=True)
            )


PARTS = """
syntax = "proto2"; package shop;
import "google/protobuf/any.proto"; import "google/protobuf/struct.proto";
message Order {
  optional int32 id = 1;
  repeated group Line = 2 { required string sku = 1; }
  oneof payment { string card = 3; Order nested = 4; }
  optional .google.protobuf.Any any = 5;
  repeated sint32 numbers = 6;
  optional Order again = 7;
  optional .google.protobuf.Struct more = 8;
  repeated fixed32 sums = 9;
  map<string, int32> sizes = 11;
}
"""


@pytest.mark.parametrize(
    ("data", "places"),
    [
        ("0805 0806", {"id": (2, 4)}),
        ("13 0a0161 14", {"line": (0, 5), "line.[0]": (0, 5), "line.[0].sku": (1, 4)}),
        ("1a0161 2200 2202 0807", {"nested": (3, 9), "nested.id": (7, 9)}),
        ("1a0161 2200 1a0162", {"card": (5, 8)}),
        (
            "3203 010204 0805 3006",
            {"id": (5, 7), "numbers": (0, 9)}
            | {"numbers.[0]": (2, 3), "numbers.[1]": (3, 4), "numbers.[2]": (4, 5)}
            | {"numbers.[3]": (7, 9)},
        ),
        ("3a02 0805 0801 3a02 0806", {"id": (4, 6), "again": (0, 10), "again.id": (8, 10)}),
        (
            "4a08 0100000002000000",
            {"sums": (0, 10), "sums.[0]": (2, 6), "sums.[1]": (6, 10)},
        ),
        ("5a05 0a0161 1009 5a05 0a0161 1007", {"sizes": (0, 14), "sizes.a": (7, 14)}),
        (
            "f001 05 f001 06 f301 0801 f401",
            {"30": (0, 12), "30.[0]": (0, 3), "30.[1]": (3, 6), "30.[2]": (6, 12)}
            | {"30.[2].1": (8, 10)},
        ),
        (
            "2a17 0a11 747970652e782f73686f702e4f72646572 1202 0805",
            {"any": (0, 25), "any.@type": (2, 21), "any.id": (23, 25)},
        ),
        ("2a06 0a0178 1201ff", {"any": (0, 8), "any.@type": (2, 5), "any.value": (5, 8)}),
        (
            "4209 0a07 0a0161 1202 2001",
            {"more": (0, 11), "more.a": (2, 11)},
        ),
    ],
)
def test_parts_of_repeated_replaced_and_unknown_fields(
    data: str, places: dict[str, tuple[int, int]]
) -> None:
    schema = ProtoSchema(PARTS)
    found = schema.located(schema.first, bytes.fromhex(data), 0)
    assert found is not None
    paths: dict[str, tuple[int, int]] = {}

    def collect(part: LocatedValue, path: str) -> None:
        if part.start < part.end and path:
            paths[path] = part.start, part.end
        for name, each in part.members:
            collect(each, f"{path}.{name}".lstrip("."))

    collect(found, "")
    assert paths == places


@pytest.mark.long
def test_messages_with_hostile_pieces_are_shown_without_places() -> None:
    schema = ProtoSchema(PARTS)
    for data in (b"\x08\x05" * (MAX_PARTS + 1), b"\x0b" + b"\x08\x05" * 600_000 + b"\x0c"):
        assert schema.located(schema.first, data, 0) is None
    halves = b"\x3a\x01\x08" + b"\x3a\x01\x05"  # a field across two pieces of a message
    assert schema.value(schema.first, halves, 0, is_exact=True)["again"]["id"] == 5
    assert schema.located(schema.first, halves, 0) is None


def test_a_schema_inside_itself_and_a_union_have_places_of_fields() -> None:
    fields = [{"name": "n", "type": "int"}, {"name": "next", "type": ["null", "L"]}]
    chain = {"type": "record", "name": "L", "fields": fields}
    found = AvroSchema(json.dumps(chain)).located(b"\x02\x02\x04\x00", 0)
    assert found is not None
    inner = found.member("next")
    assert inner is not None
    assert inner[:3] == ({"n": 2, "next": None}, 1, 4)
    assert [(name, *each[:3]) for name, each in inner.members] == [
        ("n", 2, 2, 3),
        ("next", None, 3, 4),
    ]


def test_the_payload_of_connect_and_what_was_compressed() -> None:
    reader = ValueReader(SchemaStore(), TopicFormats())
    data = b'{"schema": null, "payload": {"id": 5}}'
    found = reader.read("orders", data).located_in(data)
    assert found is not None
    assert data[found.start : found.end] == b'{"id": 5}'
    assert reader.read("orders", data).located_in(bytes(bytearray(data))) is None
    assert reader.read("orders", b"text").located_in(b"text") is None
