from __future__ import annotations

import io
import json
import resource
from random import Random
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dissector.values.avro.avro_files import container_values
from dissector.values.avro.avro_fingerprint import canonical_form, fingerprint
from dissector.values.avro.avro_schema import AvroSchema
from dissector.values.value_limits import (
    MAX_DEPTH,
    MIN_OUTPUT,
    SchemaProblem,
    ValueProblem,
    output_limit,
)
from tests.corpus import fast_and_long
from tests.dissector.values.avro.avro_samples import Samples

fastavro = pytest.importorskip("fastavro")

SEEDS = fast_and_long([range(60)], [range(100, 2_100)])

LIST = {"type": "record", "name": "L", "fields": [{"name": "next", "type": ["null", "L"]}]}


def written(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


@pytest.mark.parametrize("seeds", SEEDS)
def test_values_of_random_schemas_as_fastavro_writes_them(seeds: range) -> None:
    for seed in seeds:
        samples = Samples(Random(seed))
        schema = AvroSchema(json.dumps(samples.schema))
        for _ in range(5):
            value, expected = samples.draw()
            assert schema.value(written(samples.schema, value)) == expected, seed


@pytest.mark.parametrize("seeds", SEEDS)
def test_fingerprints_are_those_of_fastavro(seeds: range) -> None:
    from fastavro.schema import fingerprint as their_fingerprint
    from fastavro.schema import to_parsing_canonical_form

    for seed in seeds:
        schema = Samples(Random(seed)).schema
        form = to_parsing_canonical_form(schema)
        assert canonical_form(schema) == form
        assert fingerprint(schema).hex() == their_fingerprint(form, "CRC-64-AVRO")


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_container_files(codec: str) -> None:
    samples = Samples(Random(5))
    drawn = [samples.draw() for _ in range(50)]
    out = io.BytesIO()
    fastavro.writer(out, samples.schema, [each[0] for each in drawn], codec=codec)
    assert container_values(out.getvalue()) == [each[1] for each in drawn]
    with pytest.raises(ValueProblem):
        container_values(out.getvalue()[:-3])


def test_logical_types() -> None:
    def value(schema: dict[str, Any], data: bytes) -> Any:
        return AvroSchema(json.dumps(schema)).value(data)

    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
    assert value(decimal, b"\x04\x04\xd2") == 12.34
    assert value(decimal, b"\x02\xff") == -0.01
    assert value({**decimal, "scale": 0}, b"\x04\x04\xd2") == 1234
    large = f"{int.from_bytes(bytes([127] * 16))}"
    assert value(decimal, b"\x20" + b"\x7f" * 16) == f"{large[:-2]}.{large[-2:]}"
    assert value({"type": "int", "logicalType": "date"}, b"\x02") == "1970-01-02"
    assert value({"type": "int", "logicalType": "time-millis"}, b"\x02") == "00:00:00.001"
    far = {"type": "long", "logicalType": "timestamp-millis"}
    assert value(far, b"\xfe" + b"\xff" * 8 + b"\x01") == 2**63 - 1
    uuid = {"type": "fixed", "size": 16, "name": "U", "logicalType": "uuid"}
    assert value(uuid, bytes(range(16))) == "00010203-0405-0607-0809-0a0b0c0d0e0f"
    assert value({"type": "string", "logicalType": "unheard-of"}, b"\x02a") == "a"


def test_types_of_a_reference_are_known() -> None:
    user = {"type": "record", "name": "a.User", "fields": [{"name": "id", "type": "int"}]}
    order = {"type": "record", "name": "a.Order", "fields": [{"name": "user", "type": "User"}]}
    schema = AvroSchema(json.dumps(order), [json.dumps(user)])
    assert schema.value(b"\x0a") == {"user": {"id": 5}}
    with pytest.raises(SchemaProblem, match="unknown type 'User'"):
        AvroSchema(json.dumps(order))


def test_types_inside_themselves_are_read_up_to_a_depth() -> None:
    schema = AvroSchema(json.dumps(LIST))
    assert schema.value(b"\x02\x02\x00") == {"next": {"next": {"next": None}}}
    schema.value(b"\x02" * MAX_DEPTH + b"\x00")
    with pytest.raises(ValueProblem, match="nested deeper than"):
        schema.value(b"\x02" * 5000 + b"\x00")


ZEROES = {"type": "array", "items": "null"}
WIDE = {
    "type": "record",
    "name": "W",
    "fields": [{"name": f"field{at}", "type": "null"} for at in range(2000)],
}


def doubling(levels: int) -> Any:
    """Return a schema whose value of no bytes has two to the power of `levels` parts."""
    schema: Any = "null"
    for at in range(levels):
        inner = schema if at == 0 else f"D{at - 1}"
        fields = [{"name": "a", "type": schema}, {"name": "b", "type": inner}]
        schema = {"type": "record", "name": f"D{at}", "fields": fields}
    return schema


@pytest.mark.parametrize(
    ("schema", "data"),
    [
        (ZEROES, b"\x80\xad\xe2\x04\x00"),  # five million items
        (ZEROES, b"\xfe" + b"\xff" * 8 + b"\x01\x00"),
        ({"type": "array", "items": WIDE}, b"\xe8\x07\x00"),
        ({"type": "map", "values": "null"}, b"\xfe" + b"\xff" * 8 + b"\x01\x00"),
        (doubling(40), b""),
        (["null", {"type": "enum", "name": "E", "symbols": ["x" * 100_000]}], b"\x02\x00"),
    ],
)
def test_items_of_no_bytes_are_limited(schema: Any, data: bytes) -> None:
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ValueProblem, match="more output than its size allows"):
        AvroSchema(json.dumps(schema)).value(data)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < used + 100_000


def any_schema() -> st.SearchStrategy[Any]:
    words = st.sampled_from(
        ["null", "int", "long", "string", "bytes", "double", "R", "a.R", "record", "type", "fixed"]
    )
    names = st.sampled_from(["R", "E", "a.R", "", "x y"])
    return st.recursive(
        words | st.none() | st.integers(),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.builds(lambda items: {"type": "array", "items": items}, inner),
            st.builds(lambda values: {"type": "map", "values": values}, inner),
            st.builds(
                lambda name, types: {
                    "type": "record",
                    "name": name,
                    "fields": [{"name": f"f{at}", "type": each} for at, each in enumerate(types)],
                },
                names,
                st.lists(inner, max_size=3),
            ),
            st.builds(
                lambda name, size, logical: {
                    "type": "fixed",
                    "name": name,
                    "size": size,
                    "logicalType": logical,
                    "scale": size,
                },
                names,
                st.integers(-1, 20),
                st.sampled_from(["decimal", "uuid", "duration", "date", 5]),
            ),
            st.dictionaries(st.sampled_from(["type", "name", "fields", "symbols"]), inner),
        ),
        max_leaves=12,
    )


_INSIDE_ITSELF = {
    "type": "record",
    "name": "R",
    "fields": [{"name": "f", "type": {"type": "record", "name": "R", "fields": []}}],
}


@given(schema=any_schema(), data=st.binary(max_size=60))
@example(schema=_INSIDE_ITSELF, data=b"")
def test_hostile_schemas_and_values_raise_problems_only(schema: Any, data: bytes) -> None:
    hostile(schema, data)


def hostile(schema: Any, data: bytes) -> None:
    """Read a value by a schema, and write it; there is no error but `ValueProblem`."""
    try:
        parsed = AvroSchema(json.dumps(schema))
        fingerprint(parsed.declared)
        value = parsed.value(data)
    except ValueProblem:
        return
    assert len(json.dumps(value)) <= output_limit(len(data)) + 40 * MIN_OUTPUT


@pytest.mark.long
def test_many_hostile_values() -> None:
    """Random schemas, with values that are right but for some bytes."""
    random = Random(1)
    for _ in range(3_000):
        samples = Samples(random)
        schema = AvroSchema(json.dumps(samples.schema))
        good = written(samples.schema, samples.draw()[0])
        for _ in range(40):
            data = bytearray(good)
            for _ in range(random.randrange(1, 4)):
                if data:
                    data[random.randrange(len(data))] = random.choice([0, 1, 2, 0x7F, 0xFF])
            try:
                schema.value(bytes(data[: random.choice([len(data), random.randrange(9)])]))
            except ValueProblem:
                continue
