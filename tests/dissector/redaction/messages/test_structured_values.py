"""Redacted keys and values that their schemas still read."""

from __future__ import annotations

import base64
import io
import json
import math
from random import Random
from typing import Any
from uuid import UUID

import pytest

from dissector.protocol.field_roles import ValueKind
from dissector.redaction.messages.structured_values import StructuredValues
from dissector.redaction.messages.values import ValueRedactor
from dissector.redaction.pseudonyms.pseudonyms import Pseudonyms
from dissector.values.schemas.registry_entries import add_entry
from dissector.values.schemas.schema_store import SchemaStore
from dissector.values.topic_formats import TopicFormats
from dissector.values.value_leaves import MAX_LEAVES
from dissector.values.value_reader import ValueReader
from tests.corpus import fast_and_long
from tests.dissector.values.avro.avro_samples import Samples

PREFIX = b"\x00\x00\x00\x00\x07"
SEEDS = fast_and_long([range(8)], [range(100, 1_100)])


class Redacted:
    """Values by one schema, before and after."""

    def __init__(self, **entry: Any) -> None:
        store = SchemaStore()
        add_entry(store, {"id": 7, "subject": "t-value", "version": 1, **entry})
        self.reader = ValueReader(store, TopicFormats())
        self.values = StructuredValues(ValueRedactor(Pseudonyms(b"a key")), self.reader)

    def of(self, data: bytes, mark_bytes: int = 8) -> bytes:
        new = self.values.replaced("t", data, {}, is_key=False, mark_bytes=mark_bytes)
        assert new is not None
        assert len(new) == len(data)
        return new

    def pair(self, data: bytes, mark_bytes: int = 8) -> tuple[Any, Any]:
        old, new = (self.reader.read("t", each) for each in (data, self.of(data, mark_bytes)))
        assert old.problem is None
        assert new.problem is None
        return old.value, new.value


def assert_alike(old: Any, new: Any, *, has_names: bool) -> None:
    """Check that a value has the structure of another; names of maps are contents."""
    if isinstance(old, dict):
        assert not has_names or list(old) == list(new)
        if len(old) != len(new):  # short marks of keys of a map may be equal
            assert not has_names
            return
        for one, other in zip(old.values(), new.values(), strict=True):
            assert_alike(one, other, has_names=has_names)
    elif isinstance(old, list):
        assert len(old) == len(new)
        for one, other in zip(old, new, strict=True):
            assert_alike(one, other, has_names=has_names)
    else:
        assert type(old) is type(new)
        if isinstance(old, bool) or old is None:
            assert old == new
        if isinstance(old, float) and old and not has_names:
            assert math.frexp(old)[1] == math.frexp(new)[1]
        if isinstance(old, str) and len(old.encode()) > 30:
            assert old != new or set(old) == {"x"}  # the filler
            assert len(old.encode()) == len(new.encode())


@pytest.mark.parametrize("seeds", SEEDS)
def test_avro_values_keep_their_structure(seeds: range) -> None:
    fastavro = pytest.importorskip("fastavro")
    for seed in seeds:
        samples = Samples(Random(seed))
        # A decimal of many digits becomes a text, one of few a number: both are bytes here.
        schema = json.dumps(samples.schema).replace('"logicalType": "decimal", ', "")
        redacted = Redacted(schema=schema)
        parsed = fastavro.parse_schema(samples.schema)
        for mark_bytes in (8, 4, 0):
            out = io.BytesIO()
            fastavro.schemaless_writer(out, parsed, samples.draw()[0])
            data = PREFIX + out.getvalue()
            if len(data) > MAX_LEAVES:  # perhaps too many of them
                continue
            assert_alike(*redacted.pair(data, mark_bytes), has_names=False)
            again = fastavro.schemaless_reader(io.BytesIO(redacted.of(data)[5:]), parsed, None)
            assert fastavro.validate(again, parsed)


@pytest.mark.parametrize("syntax", ["proto3", "proto2"])
@pytest.mark.parametrize("seeds", SEEDS)
def test_protobuf_messages_keep_their_structure(seeds: range, syntax: str) -> None:
    json_format = pytest.importorskip("google.protobuf.json_format")
    from tests.dissector.values.protobuf.proto_samples import ProtoSamples

    for seed in seeds:
        samples = ProtoSamples(Random(seed), syntax)
        text = base64.b64encode(samples.file.SerializeToString()).decode()
        redacted = Redacted(schema=text, schemaType="PROTOBUF")
        for mark_bytes in (8, 4, 0):
            message = samples.draw()
            data = PREFIX + b"\x00" + message.SerializeToString()
            new = redacted.of(data, mark_bytes)
            found = samples.kind.FromString(new[6:])
            assert found.ByteSize() <= message.ByteSize()  # of equal keys of a map one is left
            json_format.MessageToDict(found)
            redacted.pair(data, mark_bytes)


ORDER = {
    "id": 1205,
    "total": -12.50e3,
    "name": 'Ann "A" Lee',
    "lines": [{"sku": "s-1", "left": 0}, {"sku": "s-1", "left": 7}],
    "state": "paid",
    "ok": True,
    "none": None,
    "uuid": "63836c98-85e0-4bef-840b-2615e9991c8b",
}


def test_json_keeps_names_words_and_sizes() -> None:
    schema = {"properties": {"state": {"enum": ["paid", "sent"]}}}
    redacted = Redacted(schema=json.dumps(schema), schemaType="JSON")
    for data in (json.dumps(ORDER, indent=1).encode(), PREFIX + json.dumps(ORDER).encode()):
        old, new = redacted.pair(data)
        assert_alike(old, new, has_names=True)
        assert new["lines"][0]["sku"] == new["lines"][1]["sku"] != "s-1"
        assert new["uuid"].count("-") == 4
        assert (new["state"] == "paid") == data.startswith(PREFIX)
        assert not {"Ann", "1205", "63836c98"} & set(json.dumps(new).replace('"', " ").split())
    long = json.loads(redacted.of(b'{"n": 1000000000000000}'))["n"]
    assert len(set(str(long))) > 3  # zeros are digits too
    connect = {"schema": {"type": "string", "optional": False}, "payload": "secret"}
    new_text = json.loads(redacted.of(json.dumps(connect).encode()))
    assert new_text["schema"] == connect["schema"]
    assert new_text["payload"] != "secret"


def test_what_no_schema_reads_is_left_to_others() -> None:
    redacted = Redacted(schema='"string"')
    for data in (b"some text", b"\xff\xfe", PREFIX + b"\x04a", b"\0\0\0\0\x63abcd"):
        assert redacted.values.replaced("t", data, {}, is_key=False, mark_bytes=8) is None


@pytest.mark.parametrize(("mark_bytes", "is_other"), [(8, True), (4, True), (3, False)])
def test_ids_are_other_ids_as_long_as_marks_are(mark_bytes: int, is_other: bool) -> None:
    old, new = Redacted(schema="{}", schemaType="JSON").pair(json.dumps(ORDER).encode(), mark_bytes)
    assert new["uuid"] != old["uuid"]
    assert bool(UUID(new["uuid"]).int) == is_other


def test_bytes_become_noise_where_all_stay_different() -> None:
    redacted = Redacted(schema='"bytes"')
    data = PREFIX + b"\x28" + b"twenty bytes of acme"
    assert redacted.of(data)[6:] == Pseudonyms(b"a key").noise(data[6:])
    assert redacted.of(data, 4)[6:] == Pseudonyms(b"a key").content(data[6:], 4)


def test_records_of_a_registry_name_pseudonyms_of_topics() -> None:
    redacted = Redacted(schema='"string"')
    values = ValueRedactor(Pseudonyms(b"a key"))
    orders, lines = (values.text(ValueKind.TOPIC, each, {}) for each in ("orders", "lines"))
    schema = {"schema": '{"subject": "orders"}', "id": 3, "version": 1, "deleted": False}
    references = [{"name": "l.proto", "subject": "lines", "version": 1}]
    for entry, subject in (
        ({"keytype": "SCHEMA", "subject": "orders-value", "version": 1, "magic": 1}, "-value"),
        ({"subject": "orders-key", **schema, "references": references}, "-key"),
    ):
        data = json.dumps(entry, separators=(",", ":")).encode()
        new = redacted.values.replaced("_schemas", data, {}, is_key=False, mark_bytes=8)
        assert new is not None
        assert len(new) == len(data)
        expected = entry | {"subject": orders + subject}
        if "references" in entry:
            expected["references"] = [references[0] | {"subject": lines}]
        assert json.loads(new) == expected
    for other in (b"no JSON", b'{"keytype":"NOOP","magic":0}'):
        assert redacted.values.replaced("_schemas", other, {}, is_key=True, mark_bytes=8) is None
