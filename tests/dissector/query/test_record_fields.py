"""One field of values, as the whole values have it."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

import pytest

from dissector.filter.evaluate import values_at
from dissector.query.record_fields import RecordFields
from dissector.values.schemas.registry_entries import add_entry
from dissector.values.schemas.schema_store import SchemaStore
from dissector.values.topic_formats import TopicFormats
from dissector.values.value_reader import ValueReader
from tests.corpus import fast_and_long
from tests.dissector.values.avro.avro_samples import Samples

fastavro = pytest.importorskip("fastavro")
pytest.importorskip("google.protobuf")

from tests.dissector.values.protobuf import proto_samples  # noqa: E402

PREFIX = b"\x00\x00\x00\x00\x07"
SEEDS = fast_and_long([range(20)], [range(first, first + 100) for first in range(100, 1_100, 100)])


def reader_of(schema: Any, kind: str = "AVRO") -> ValueReader:
    store = SchemaStore()
    text = schema if kind == "PROTOBUF" else json.dumps(schema)
    entry = {"id": 7, "subject": "t-value", "version": 1, "schema": text, "schemaType": kind}
    add_entry(store, entry)
    return ValueReader(store, TopicFormats())


def paths(value: Any, around: Sequence[str] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the paths in a value, and some that it lacks."""
    if isinstance(value, list):
        for each in value[:2]:
            yield from paths(each, around)
    if isinstance(value, dict):
        yield (*around, "missing")
        for name, each in list(value.items())[:6]:
            yield (*around, name)
            yield from paths(each, (*around, name))


def is_small(data: bytes) -> bool:
    """Return whether a value is read fast, once for each of its paths; some have megabytes."""
    return len(data) < 100_000


def damaged(data: bytes, random: Random) -> Iterator[bytes]:
    yield data[: random.randrange(5, len(data) + 1)]
    yield data + b"\x00"
    for _ in range(4):
        changed = bytearray(data)
        changed[random.randrange(5, len(data) + 1) - 1] = random.randrange(256)
        yield bytes(changed)


@pytest.mark.parametrize("seeds", SEEDS)
def test_fields_of_whole_and_of_damaged_values(seeds: range) -> None:
    for seed in seeds:
        random = Random(seed)
        samples = Samples(random)
        parsed, reader = fastavro.parse_schema(samples.schema), reader_of(samples.schema)
        written = []
        for _ in range(3):
            out = io.BytesIO()
            fastavro.schemaless_writer(out, parsed, samples.draw()[0])
            written.append(PREFIX + out.getvalue())
        check_fields(reader, written, random)


@pytest.mark.long
@pytest.mark.parametrize("seeds", SEEDS)
def test_fields_of_protobuf(seeds: range) -> None:
    for seed in seeds:
        random = Random(seed)
        samples = proto_samples.ProtoSamples(random)
        reader = reader_of(proto_samples.text_of(samples.file), "PROTOBUF")
        prefix = PREFIX + b"\x00"
        written = [prefix + samples.draw().SerializeToString() for _ in range(3)]
        check_fields(reader, written, random)


def check_fields(reader: ValueReader, written: Sequence[bytes], random: Random) -> None:
    for path in set(paths(reader.read("t", written[0]).value)):
        fields = RecordFields(reader, path, is_key=False)
        for data in filter(is_small, written):
            for each in (data, *damaged(data, random)):
                expected = reader.read("t", each, with_text=False).value
                assert repr(list(fields.values("t", each, {}))) == repr(
                    list(values_at(expected, path))
                ), (path, each.hex())


def test_a_schema_that_grows_when_it_is_expanded() -> None:
    """Records inside records, each twice in the next: 2^40 fields, of which none is read twice."""
    kind: Any = {"type": "record", "name": "R0", "fields": [{"name": "n", "type": "long"}]}
    for level in range(1, 41):
        names = [{"name": "a", "type": kind}, {"name": "b", "type": f"R{level - 1}"}]
        kind = {"type": "record", "name": f"R{level}", "fields": names}
    schema = {
        "type": "record",
        "name": "Top",
        "fields": [{"name": "x", "type": "string"}, {"name": "deep", "type": ["null", kind]}],
    }
    reader = reader_of(schema)
    data = PREFIX + b"\x02a\x00"
    for path in (("x",), ("deep", "a", "b"), ("deep",)):
        fields = RecordFields(reader, path, is_key=False)
        found = [list(fields.values("t", data, {})) for _ in range(3)]
        assert found == [{"x": ["a"], "deep": [None]}.get(path[-1], [])] * 3
