"""Schemas and values that are made to harm: each is a problem of its record, in bounded memory."""

from __future__ import annotations

import json
import resource
import zlib
from typing import Any
from uuid import UUID

import pytest

from dissector.values.avro.avro_files import CONTAINER_MAGIC
from dissector.values.schemas.registry_entries import add_entry
from dissector.values.schemas.schema_store import SchemaStore
from dissector.values.topic_formats import TopicFormats
from dissector.values.value_reader import DecodedValue, ValueReader

PREFIX = b"\x00\x00\x00\x00\x07"
GUID = UUID(int=7, version=4)
GLUE = b"\x03\x05" + GUID.bytes


def number(value: int) -> bytes:
    """Return a number as Avro writes it."""
    value = (value << 1) ^ (value >> 63)
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def deflated(content: bytes, window_bits: int = 15) -> bytes:
    stream = zlib.compressobj(9, zlib.DEFLATED, window_bits)
    return stream.compress(content) + stream.flush()


def container(schema: str, codec: bytes, block: bytes, count: int = 1) -> bytes:
    """Return a container file of one block."""
    words = (b"avro.schema", schema.encode(), b"avro.codec", codec)
    head = b"\x04" + b"".join(number(len(word)) + word for word in words) + b"\x00"
    sync = b"S" * 16
    return CONTAINER_MAGIC + head + sync + number(count) + number(len(block)) + block + sync


def read(kind: str, schema: Any, data: bytes) -> DecodedValue:
    store = SchemaStore()
    text = schema if isinstance(schema, str) else json.dumps(schema)
    store.add(kind, text, "orders-value", 1, refs=(7, GUID))
    return ValueReader(store, TopicFormats()).read("orders", data)


def record(name: str, *fields: tuple[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": field, "type": kind, **more} for field, kind in fields],
    }


FIXED = ["null", *({"type": "fixed", "name": f"F{at}", "size": 1} for at in range(9_999))]
RECORDS = ["null", *(record(f"R{at}", ("a", "int")) for at in range(9_999))]
LIST = record("L", ("next", ["null", "L"]))
TREE = record("T", ("inner", {"type": "array", "items": "T"}))
TWO = "message M { optional int32 a = 1; }"

REFUSED: dict[str, tuple[str, Any, bytes, str]] = {
    "recursive": ("avro", LIST, PREFIX + b"\x02" * 5000, "nested deeper than 100"),
    "tree": ("avro", TREE, PREFIX + b"\x02" * 5000 + bytes(5000), "nested deeper than 100"),
    "no such branch": ("avro", FIXED, PREFIX + number(10_000) + b"a", "branch 10000 of 10000"),
    "branch below 0": ("avro", FIXED, PREFIX + b"\x01", "branch -1 of 10000"),
    "type of a circle": ("avro", record("A", ("b", "B")), PREFIX + b"\x02", "unknown type 'B'"),
    "Glue bomb": ("avro", '"bytes"', GLUE + deflated(bytes(10**8)), "more than"),
    "Glue damaged": ("avro", '"bytes"', GLUE + b"abc", "compression is damaged"),
    "deflate bomb": (
        "avro",
        '"int"',
        container('"bytes"', b"deflate", deflated(bytes(10**8), -15)),
        "more than",
    ),
    "items of no bytes": ("avro", '"int"', container('"null"', b"null", b"", 10**12), "output"),
    "snappy": ("avro", '"int"', container('"bytes"', b"snappy", bytes(9)), "compression 'snappy'"),
    "long of 70 bits": ("avro", '"long"', PREFIX + b"\xff" * 9 + b"\x7f", "more than 64 bits"),
    "long of 11 bytes": ("avro", '"long"', PREFIX + b"\xff" * 10 + b"\x01", "more than 10 bytes"),
    "size": ("avro", '"string"', PREFIX + number(2**62) + b"a", "ends before its schema"),
    "size below 0": ("avro", '"bytes"', PREFIX + b"\x01a", "a negative length"),
    "JSON not a number": ("json-schema", "{}", PREFIX + b'{"a": NaN}', "NaN is not JSON"),
    "JSON digits": ("json-schema", "{}", PREFIX + b"9" * 5000, "more than 4,300 digits"),
    "JSON deep": ("json-schema", "{}", PREFIX + b"[" * 100_000, "nested deeper than 100"),
    "varint": ("protobuf", TWO, PREFIX + b"\x00\x08" + b"\xff" * 11, "more than 10 bytes"),
    "indexes": ("protobuf", TWO, PREFIX + number(2**40) + b"\x02", "message indexes"),
    "span": ("protobuf", TWO, PREFIX + b"\x00\x0a" + b"\xff" * 9 + b"\x01", "inside a field"),
    "fixed of 1 GB": (
        "avro",
        {"type": "fixed", "name": "F", "size": 10**9},
        PREFIX + b"\x04",
        "ends before|not declared",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_hostile_values_are_problems(name: str) -> None:
    kind, schema, data, reason = REFUSED[name]
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = read(kind, schema, data)
    assert any(each in (found.problem or "") for each in reason.split("|")), found
    assert (found.value, found.text) == (None, None)
    assert found.located_in(data) is None
    assert found.leaves_in(data) is None
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < used + 200_000


NAN = b"\x00\x00\x00\x00\x00\x00\xf8\x7f"
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 4}
FAR = {"type": "long", "logicalType": "timestamp-millis"}

READ: dict[str, tuple[str, Any, bytes, Any]] = {
    "huge default": (
        "avro",
        record("R", ("a", "int"), ("b", "string"), default="x" * 400_000),
        PREFIX + b"\x02\x02b",
        {"a": 1, "b": "b"},
    ),
    "last of 10,000": ("avro", FIXED, PREFIX + number(9_999) + b"a", "61"),
    "last record of 10,000": ("avro", RECORDS, PREFIX + number(9_999) + b"\x02", {"a": 1}),
    "not a number": ("avro", '"double"', PREFIX + NAN, "NaN"),
    "not a number, Protobuf": (
        "protobuf",
        "message M { optional double a = 1; }",
        PREFIX + b"\x00\x09" + NAN,
        {"a": "NaN"},
    ),
    "scale -1": ("avro", {**DECIMAL, "scale": -1}, PREFIX + b"\x04\x01\x02", "0102"),
    "huge scale": ("avro", {**DECIMAL, "scale": 2**70}, PREFIX + b"\x04\x01\x02", "0102"),
    "no scale": ("avro", {**DECIMAL, "scale": "x"}, PREFIX + b"\x04\x01\x02", "0102"),
    "time after the year 9999": ("avro", FAR, PREFIX + number(2**62), 2**62),
    "import of a file": (
        "protobuf",
        f'import "../../etc/passwd"; import "/etc/passwd"; {TWO}',
        PREFIX + b"\x00\x08\x05",
        {"a": 5},
    ),
    "names of Python": (
        "avro",
        record("__proto__", ("__class__", "int")),
        PREFIX + b"\x02",
        {"__class__": 1},
    ),
}


@pytest.mark.parametrize("name", READ)
def test_odd_schemas_that_can_be_read(name: str) -> None:
    kind, schema, data, value = READ[name]
    found = read(kind, schema, data)
    assert (found.problem, found.value) == (None, value)
    assert json.loads(found.text or "") == value


def test_schemas_that_refer_to_each_other_in_a_circle() -> None:
    store = SchemaStore()
    for _ in range(3):
        for name, other in (("a", "b"), ("b", "a")):
            schema = record(name.upper(), ("inner", ["null", other.upper()]))
            entry = {"subject": name, "version": 1, "id": ord(name), "schema": json.dumps(schema)}
            references = [{"name": other.upper(), "subject": other, "version": 1}] * 3
            add_entry(store, {**entry, "references": references})
    reader = ValueReader(store, TopicFormats())
    found = reader.read("orders", b"\x00\x00\x00\x00a" + b"\x02\x02\x00")
    assert found.problem is not None or found.value == {"inner": {"inner": None}}


def test_a_broken_value_of_a_known_schema_is_not_guessed_again() -> None:
    """Behind four more bytes, as of a longer id, it would be a number by the topic's schema."""
    found = read("avro", '"long"', PREFIX + b"\xff" * 4 + b"\xff" * 5 + b"\x7f")
    assert (found.format, found.value) == ("avro", None)
    assert "more than 64 bits" in (found.problem or "")


def test_texts_that_begin_like_a_prefix() -> None:
    assert (
        read("avro", '"int"', b"\x00abcd is text").problem
        == "the schema with id 1633837924 is unknown"
    )
    assert read("avro", '"int"', b"\x01abc is a text, and no GUID").problem is None
    assert read("avro", '"int"', b"Obj is a text").value == "Obj is a text"
    assert read("avro", '"int"', b"\x00\x00\x00\x05").problem is None  # a number
