"""Values of Confluent's own serializers, with the schemas of their mock of a registry."""

from __future__ import annotations

import json
from random import Random
from typing import Any
from uuid import UUID

import pytest

from dissector.values.schemas.registry_entries import add_entry
from dissector.values.schemas.schema_store import SchemaStore
from dissector.values.topic_formats import TopicFormats
from dissector.values.value_reader import ValueReader
from tests.corpus import fast_and_long
from tests.dissector.values.avro.avro_samples import Samples
from tests.dissector.values.protobuf.proto_samples import ProtoSamples
from tests.dissector.values.protobuf.test_proto_values import is_same

pytest.importorskip("httpx2", reason="needs confluent-kafka[schemaregistry,avro,json,protobuf]")
registry = pytest.importorskip("confluent_kafka.schema_registry")
avro = pytest.importorskip("confluent_kafka.schema_registry.avro")
json_schema = pytest.importorskip("confluent_kafka.schema_registry.json_schema")
protobuf = pytest.importorskip("confluent_kafka.schema_registry.protobuf")
serialization = pytest.importorskip("confluent_kafka.serialization")

WAYS = ("prefix", "header")
SEEDS = fast_and_long([range(15)], [range(100, 1_100)])


class Registry:
    """A mock of a registry, and the reader that knows its schemas."""

    def __init__(self) -> None:
        self.client = registry.SchemaRegistryClient.new_client({"url": "mock://"})
        self.known: set[str] = set()
        self.reader = ValueReader(SchemaStore(), TopicFormats())

    def conf(self, way: str) -> dict[str, Any]:
        return {"schema.id.serializer": getattr(registry, f"{way}_schema_id_serializer")}

    def learn(self) -> None:
        """Take the schemas, as a registry's dump has them."""
        new = set(self.client.get_subjects()) - self.known
        for subject in sorted(new, key=lambda name: name.endswith("-value")):
            self.known.add(subject)
            found = self.client.get_latest_version(subject)
            references = [
                {"name": each.name, "subject": each.subject, "version": each.version}
                for each in found.schema.references or ()
            ]
            entry = {
                "references": references,
                "subject": subject,
                "version": found.version,
                "id": found.schema_id,
                "guid": found.guid,
                "schema": found.schema.schema_str,
                "schemaType": found.schema.schema_type,
            }
            add_entry(self.reader.store, entry)

    def read(self, serializer: Any, value: Any, topic: str) -> Any:
        """Serialize a value, read it, and return what it says."""
        headers: list[tuple[str, bytes]] = []
        field = serialization.MessageField.VALUE
        data = serializer(value, serialization.SerializationContext(topic, field, headers))
        self.learn()
        found = self.reader.read(topic, data, dict(headers))
        assert found.problem is None
        assert found.schema == f"{topic}-value v1"
        return found.value


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seeds", SEEDS)
def test_avro(seeds: range, way: str) -> None:
    mock = Registry()
    for seed in seeds:
        samples = Samples(Random(seed))
        text = json.dumps(samples.schema)
        serializer = avro.AvroSerializer(mock.client, text, conf=mock.conf(way))
        for _ in range(5):
            value, expected = samples.draw()
            assert mock.read(serializer, value, f"orders{seed}") == expected


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seeds", SEEDS)
def test_protobuf(seeds: range, way: str) -> None:
    from google.protobuf import json_format

    mock = Registry()
    for seed in seeds:
        samples = ProtoSamples(Random(seed))
        kinds = [samples.kind, *_inner_kinds(samples.kind)]
        for chosen in (samples.draw(), *(kind() for kind in kinds)):
            topic = f"orders{seed}-{chosen.DESCRIPTOR.name}"
            serializer = protobuf.ProtobufSerializer(type(chosen), mock.client, conf=mock.conf(way))
            expected = json_format.MessageToDict(
                chosen, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
            )
            assert is_same(mock.read(serializer, chosen, topic), expected), seed


def _inner_kinds(kind: Any) -> list[Any]:
    from google.protobuf import message_factory

    nested = [each for each in kind.DESCRIPTOR.nested_types if not each.GetOptions().map_entry]
    return [message_factory.GetMessageClass(each) for each in nested]


@pytest.mark.parametrize("way", WAYS)
def test_json_schema(way: str) -> None:
    mock = Registry()
    schema = {"title": "Order", "type": "object", "properties": {"id": {"type": "integer"}}}
    serializer = json_schema.JSONSerializer(json.dumps(schema), mock.client, conf=mock.conf(way))
    for value in ({"id": 5}, {"id": -1, "text": "grüße", "parts": [None, {"a": 1.5}]}):
        assert mock.read(serializer, value, "orders") == value


def test_a_guid_is_that_of_the_registry() -> None:
    mock = Registry()
    serializer = avro.AvroSerializer(mock.client, '"string"', conf=mock.conf("header"))
    assert mock.read(serializer, "abc", "names") == "abc"
    found = mock.client.get_latest_version("names-value")
    assert mock.reader.store.find(UUID(found.guid)) is mock.reader.store.find(found.schema_id)
