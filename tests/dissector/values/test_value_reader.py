from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.errors import UsageError
from dissector.values.schemas.schema_store import SchemaStore
from dissector.values.topic_formats import TopicFormats
from dissector.values.value_limits import MAX_OUTPUT, output_limit
from dissector.values.value_reader import NOTHING, DecodedValue, ValueReader
from tests.example_counts import examples

CHANGE = {"op": "u", "before": None, "after": {"id": 5}, "source": {"table": "orders"}}
EVENT = {"specversion": "1.0", "id": "1", "source": "/shop", "type": "sold", "data": {"n": 1}}


def read(data: bytes | None, **more: Any) -> DecodedValue:
    return ValueReader(SchemaStore(), TopicFormats()).read("orders", data, **more)


@pytest.mark.parametrize(
    ("data", "name", "value"),
    [
        (b'{"a": 1, "b": [true, null]}', "json", {"a": 1, "b": [True, None]}),
        (b"17", "json", 17),
        (b"null", "json", None),
        (b'"text"', "json", "text"),
        (b"order-17", "text", "order-17"),
        (b"007", "text", "007"),
        (b"NaN", "text", "NaN"),
        (b"{cut", "text", "{cut"),
        ("grüße\n".encode(), "text", "grüße\n"),
        (b"", "text", ""),
        (json.dumps(CHANGE).encode(), "debezium+json", CHANGE),
        (json.dumps(EVENT).encode(), "cloudevents+json", EVENT),
    ],
)
def test_values_without_a_schema(data: bytes, name: str, value: Any) -> None:
    found = read(data)
    assert found[:3] == (name, None, value)
    assert json.loads(found.text or "") == value


@pytest.mark.parametrize("data", [None, b"\xff\xfe", b"a\x00b", b"\x1b[2J", b"\x00\x00\x00\x05"])
def test_bytes_that_are_no_format(data: bytes | None) -> None:
    assert read(data) == NOTHING


_ODD = [
    *(b"1e999", b"[1E+0400]", b"-1e310", b"[1e-999]", b"1" * 400 + b".0", b"1" * 400, b'["1e999"]'),
    *(b"[" * 100 + b"]" * 100, b"[" * 101 + b"]" * 101, b"1" * 5_000, b"0.5 ", b"01", b"1.", b"-"),
    *(
        b"true\n",
        b"true1",
        b"falsely",
        b"nul",
        b"null",
        b"tea\t",
        b"0x10",
        b"-Infinity",
        b"1e5\xff",
    ),
    *("1\u0664".encode(), b"1\x0b", b" 12", b" tea", b"[NaN]", b"1,2"),
]


@pytest.mark.parametrize("data", _ODD)
@pytest.mark.parametrize("headers", [{}, {"ce_specversion": b"1.0"}])
def test_without_texts_formats_and_problems_are_the_same(
    data: bytes, headers: dict[str, bytes]
) -> None:
    whole = read(data, headers=headers)
    found = read(data, headers=headers, with_text=False, with_problem=True)
    assert found._replace(text=whole.text) == whole
    if whole.format is not None and not whole.problem:
        assert whole.format.endswith("json") == _is_json(data)


def _is_json(data: bytes) -> bool:
    def refuse(word: str) -> None:
        raise ValueError(word)

    try:
        json.loads(data, parse_constant=refuse)
    except ValueError:
        return False
    return data.count(b"[") <= 100


def test_values_of_connect() -> None:
    schema = {"type": "struct", "name": "shop.Order", "fields": []}
    found = read(json.dumps({"schema": schema, "payload": {"id": 5}}).encode())
    assert found[:3] == ("connect+json", "shop.Order", {"id": 5})
    found = read(json.dumps({"schema": schema, "payload": CHANGE}).encode())
    assert found[:3] == ("debezium+connect+json", "shop.Order", CHANGE)
    assert read(b'{"schema": null, "payload": 5}').value == 5
    assert read(b'{"schema": 5, "payload": 5}').format == "json"


def test_cloud_events_in_headers() -> None:
    assert read(b"5", headers={"ce_specversion": b"1.0"}).format == "cloudevents+json"


def test_formats_by_topic(tmp_path: Path) -> None:
    schema = tmp_path / "order.avsc"
    schema.write_text('{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}')
    formats = TopicFormats([f"order?=avro:{schema}", "*.key=text", "logs-*=hex", "j=json"])
    reader = ValueReader(SchemaStore(), formats)
    assert reader.read("orders", b"\x0a")[:3] == ("avro", str(schema), {"a": 5})
    assert reader.read("orders", b"\x0a\x00").problem == "1 bytes behind its end at byte 1"
    assert reader.read("orders", b"5", is_key=True)[:3] == ("text", None, "5")
    assert reader.read("logs-a", b"\xff")[:3] == ("hex", None, "ff")
    assert reader.read("j", b"{").problem is not None
    assert reader.read("other", b"5").format == "json"
    assert reader.read(None, b"5").format == "json"


def test_protobuf_by_topic(tmp_path: Path) -> None:
    schema = tmp_path / "order.proto"
    schema.write_text('syntax = "proto3"; message A { int32 a = 1; } message B { string b = 1; }')
    formats = TopicFormats([f"a=protobuf:{schema}", f"b=protobuf:{schema}:B"])
    reader = ValueReader(SchemaStore(), formats)
    assert reader.read("a", b"\x08\x05")[:3] == ("protobuf", str(schema), {"a": 5})
    assert reader.read("b", b"\x0a\x01x").value == {"b": "x"}
    assert reader.read("b", bytes.fromhex("0000000001 00 0a0178")).value == {"b": "x"}
    guid = "63836c9885e04bef840b2615e9991c8b"
    for prefix in (
        "0000000001 00",  # Confluent's, with the first message
        "0000000001 0206",  # with one that the file lacks
        f"01{guid} 00",
        f"0300{guid} 07",  # Glue's
        "000000000000000001 030a0158",  # Apicurio's, with the name X
    ):
        data = bytes.fromhex(f"{prefix}0a0178")
        found = reader.read("b", data)
        assert found.value == {"b": "x"}
        located, leaves = found.located_in(data), found.leaves_in(data)
        assert located is not None
        assert leaves is not None
        assert [(name, part.value, part.end) for name, part in located.members] == [
            ("b", "x", len(data))
        ]
        assert [(each.start, each.end) for each in leaves] == [(len(data) - 1, len(data))]
    assert reader.read("b", b"\x0a\x05x").problem == "it ends inside a field"
    assert reader.read("a", b"\x08\x05\x10\x07").value == {"a": 5, "2": 7}
    for text, reason in (
        (f"c=protobuf:{schema}:C", "no message 'C' in the schema, which has A, B"),
        ("c=protobuf", "protobuf needs a schema"),
        (f"c=protobuf:{tmp_path}/none.proto", "cannot be read"),
    ):
        with pytest.raises(UsageError, match=reason):
            TopicFormats([text])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("orders", "write TOPIC=FORMAT"),
        ("=json", "write TOPIC=FORMAT"),
        ("orders=", "write TOPIC=FORMAT"),
        ("orders=xml", "no format xml; formats are json"),
        ("orders=json:file", "no format json:file"),
        ("orders=avro", "avro needs a schema, avro:FILE"),
        ("orders=avro:/none.avsc", "cannot be read"),
    ],
)
def test_wrong_formats_are_refused(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        TopicFormats([text])


def test_values_that_json_can_not_hold_are_problems() -> None:
    assert "beyond" in str(read(b"[1e999]").problem)
    deep = b"[" * 5000 + b"]" * 5000
    assert read(deep).format == "text"
    assert read(b"[" * 101 + b"]" * 101).format == "text"
    assert read(b"[" * 100 + b"]" * 100).format == "json"
    assert read(b"9" * 5000).format == "text"


def test_limits_of_output() -> None:
    assert output_limit(2000) == 64 * 2000
    assert output_limit(10**9) == MAX_OUTPUT


@given(
    data=st.binary(max_size=40)
    | st.binary(max_size=40).map(lambda each: b"\x00\x00\x00\x00" + each),
    headers=st.dictionaries(
        st.sampled_from(["__value_schema_id", "apicurio.value.globalId", "ce_specversion"]),
        st.binary(max_size=20),
    ),
    text=st.text(max_size=40),
    kind=st.sampled_from(["avro", "json-schema", "protobuf", "?"]),
)
def test_hostile_records_decode_or_have_a_problem(
    data: bytes, headers: dict[str, bytes], text: str, kind: str
) -> None:
    check_hostile(data, headers, text, kind)


def check_hostile(data: bytes, headers: dict[str, bytes], text: str, kind: str) -> None:
    """Read a value with schemas of any text; its result is JSON, or a problem."""
    store = SchemaStore()
    for number in range(3):
        store.add(kind, text, "orders-value", number, refs=(number,))
    found = ValueReader(store, TopicFormats()).read("orders", data, headers)
    assert found.problem is None or found.value is None
    if found.text is not None:
        assert json.loads(found.text) == found.value


@pytest.mark.long
def test_many_hostile_records() -> None:
    random = Random(3)
    for _ in range(examples(100) * 1000):
        data = random.choice([b"", b"\x00\x00\x00\x00", b"{", b"Obj\x01", b"\xc3\x01"])
        data += random.randbytes(random.randrange(40))
        headers = {"__value_schema_id": random.randbytes(random.choice([0, 5, 17]))}
        text = random.choice(['"int"', '["null","string"]', '{"type":"map","values":"int"}', "{"])
        check_hostile(data, headers, text, random.choice(["avro", "json-schema"]))
