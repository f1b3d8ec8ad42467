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
