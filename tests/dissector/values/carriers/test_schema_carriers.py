"""Each way of carrying the id of a schema, and bytes that only look so."""

from __future__ import annotations

import json
import struct
import zlib
from typing import Any
from uuid import UUID

import pytest

from dissector.values.avro.avro_fingerprint import fingerprint
from dissector.values.schemas.schema_store import SchemaStore
from dissector.values.topic_formats import TopicFormats
from dissector.values.value_reader import NOTHING, ValueReader

GUID = UUID("63836c98-85e0-4bef-840b-2615e9991c8b")
SCHEMA = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "long"}]}
CONTENT = b"\x0a"


@pytest.fixture
def reader() -> ValueReader:
    store = SchemaStore()
    refs = (7, GUID)
    store.add("avro", json.dumps(SCHEMA), "orders-value", 2, refs=refs)
    store.add("json-schema", "{}", "events-value", 1, refs=(8,))
    return ValueReader(store, TopicFormats())


def header(is_key: bool, content: bytes) -> dict[str, bytes]:
    return {f"__{'key' if is_key else 'value'}_schema_id": content}


@pytest.mark.parametrize("is_key", [False, True])
@pytest.mark.parametrize(
    ("prefix", "in_header"),
    [
        (b"", b"\x00" + struct.pack(">i", 7)),
        (b"", b"\x01" + GUID.bytes),
        (b"\x00" + struct.pack(">i", 7), b""),
        (b"\x00" + struct.pack(">q", 7), b""),
        (b"\x01" + GUID.bytes, b""),
        (b"\x03\x00" + GUID.bytes, b""),
        (b"\xc3\x01" + fingerprint(SCHEMA), b""),
    ],
)
def test_a_schema_in_headers_or_before_the_value(
    reader: ValueReader, prefix: bytes, in_header: bytes, is_key: bool
) -> None:
    headers = header(is_key, in_header) if in_header else {}
    found = reader.read("orders", prefix + CONTENT, headers, is_key=is_key)
    assert found[:3] == ("avro", "orders-value v2", {"a": 5})
    assert found.text == '{"a": 5}'
    assert found.problem is None
    if in_header:
        assert reader.read("orders", CONTENT, headers, is_key=not is_key).schema is None
    extra = reader.read("orders", prefix + CONTENT + b"!", headers, is_key=is_key)
    assert extra.problem == f"1 bytes behind its end at byte {len(prefix) + 1}"
    assert extra.value is None
    assert extra.schema == "orders-value v2"
    short = reader.read("orders", prefix, headers, is_key=is_key)
    if prefix:
        assert short.problem == "it ends before its schema does"


def test_apicurio_headers_and_glue_compression(reader: ValueReader) -> None:
    for name in ("globalId", "contentId"):
        headers = {f"apicurio.value.{name}": struct.pack(">q", 7)}
        assert reader.read("orders", CONTENT, headers).value == {"a": 5}
    packed = b"\x03\x05" + GUID.bytes + zlib.compress(CONTENT)
    assert reader.read("orders", packed).value == {"a": 5}
    assert "cut off" in str(reader.read("orders", packed[:-7]).problem)
    damaged = packed[:18] + b"!" + packed[19:]
    assert "compression is damaged" in str(reader.read("orders", damaged).problem)
    bomb = b"\x03\x05" + GUID.bytes + zlib.compress(bytes(10**7))
    assert "decompressed" in str(reader.read("orders", bomb).problem)


def test_json_with_its_schema_named(reader: ValueReader) -> None:
    found = reader.read("events", b'\x00\x00\x00\x00\x08{"a": [1, null]}')
    assert found[:3] == ("json-schema", "events-value v1", {"a": [1, None]})
    found = reader.read("events", b"\x00\x00\x00\x00\x08{")
    assert found.problem is not None
    assert found.problem.startswith("not JSON")


def test_an_unknown_id_is_a_problem_unless_it_may_be_a_number(reader: ValueReader) -> None:
    found = reader.read("orders", b"\x00\x00\x00\x01\x00abcd")
    assert found[:5] == (None, "id 256", None, None, "the schema with id 256 is unknown")
    assert reader.read("orders", (256).to_bytes(8, "big")) == NOTHING
    assert reader.read("orders", (256).to_bytes(4, "big")) == NOTHING
    unknown = reader.read("none", CONTENT, header(False, b"\x01" + bytes(16)))
    assert unknown.problem == f"the schema with guid {UUID(int=0)} is unknown"


def test_a_schema_of_the_topic_is_used_for_an_unknown_id_if_it_fits(reader: ValueReader) -> None:
    known = reader.read("orders", b"\x00\x00\x00\x01\x00" + CONTENT)
    assert known[:3] == ("avro", "orders-value v2", {"a": 5})
    assert reader.read("orders", b"\x00\x00\x00\x01\x00" + CONTENT * 2).problem is not None


def test_more_schemas_are_read_once_when_one_is_unknown(reader: ValueReader) -> None:
    calls = []

    def read_more() -> None:
        calls.append(1)
        reader.store.add("avro", '"string"', "names-value", 1, refs=(9,))

    reader.read_more = read_more
    assert reader.read("orders", b"\x00\x00\x00\x00\x07" + CONTENT).value == {"a": 5}
    assert not calls
    assert reader.read("names", b"\x00\x00\x00\x00\x09\x02x").value == "x"
    assert reader.read("none", b"\x00\x00\x00\x00\x0a\x02x").problem is not None
    assert len(calls) == 1


PROTO = """
syntax = "proto3"; package shop;
message B { message C { bool c = 1; } int32 n = 1; }
message A { string s = 1; }
"""


@pytest.mark.parametrize(
    ("prefix", "headers", "value"),
    [
        ("0000000009 00", {}, {"n": 5}),
        ("0000000009 0202", {}, {"s": ""}),
        ("0000000009 040000", {}, {"c": True}),
        (f"01 {GUID.hex} 00", {}, {"n": 5}),
        (f"0300 {GUID.hex} 01", {}, {"n": 5}),
        (f"0300 {GUID.hex} 02", {}, {"c": True}),
        ("00 0000000000000009 08 0a0673686f702e42", {}, {"n": 5}),
        ("00", {"__value_schema_id": "00 00000009"}, {"n": 5}),
        ("", {"__value_schema_id": f"01 {GUID.hex} 040000"}, {"c": True}),
        (
            "",
            {
                "apicurio.value.globalId": "0000000000000009",
                "apicurio.protobuf.type": b"shop.B.C".hex(),
            },
            {"c": True},
        ),
        ("03 0a0142", {"apicurio.value.contentId": "0000000000000009"}, {"n": 5}),
        ("", {"apicurio.value.contentId": "0000000000000009"}, {"n": 5}),
    ],
)
def test_the_message_of_a_protobuf_schema(
    prefix: str, headers: dict[str, str], value: dict[str, Any]
) -> None:
    store = SchemaStore()
    store.add("protobuf", PROTO, "orders-value", 1, refs=(9, GUID))
    reader = ValueReader(store, TopicFormats())
    content = {"n": "0805", "c": "0801", "s": ""}[next(iter(value))]
    data = bytes.fromhex(prefix + content)
    given = {name: bytes.fromhex(each) for name, each in headers.items()}
    found = reader.read("orders", data, given)
    assert found.problem is None
    assert found[:3] == ("protobuf", "orders-value v1", value)


def test_unknown_ids_of_protobuf_fit_only_without_unknown_fields() -> None:
    store = SchemaStore()
    store.add("protobuf", PROTO, "orders-value")
    reader = ValueReader(store, TopicFormats())
    assert reader.read("orders", bytes.fromhex("0000000063 00 0805")).value == {"n": 5}
    found = reader.read("orders", bytes.fromhex("0000000063 00 080510051805"))
    assert found.problem == "the schema with id 99 is unknown"
