"""Confluent's serializers in Python: three formats, with ids in prefixes and GUIDs in headers."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

from tools.record.scenario import Stage, until
from tools.record.values.registry_stand_in import Registry

Expected = dict[str, dict[str, Any]]

ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "customer", "type": ["null", "string"], "default": None},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "PAID"]}},
        {"name": "prices", "type": {"type": "map", "values": "double"}},
        {"name": "items", "type": {"type": "array", "items": "string"}},
    ],
}
ORDERS = [
    {"id": 1, "customer": "Ann", "state": "NEW", "prices": {"lamp": 12.5}, "items": ["lamp"]},
    {"id": -(2**40), "customer": None, "state": "PAID", "prices": {}, "items": ["chair", "tisch"]},
    {"id": 3, "customer": "Zoë", "state": "PAID", "prices": {"a": -0.25}, "items": []},
]
ORDER_JSON = {"title": "Order", "type": "object", "properties": {"id": {"type": "integer"}}}


def play(stage: Stage, registry: Registry) -> Expected:
    """Produce and consume values in each way; return what each topic has."""
    from confluent_kafka import Producer
    from confluent_kafka import schema_registry as sr
    from confluent_kafka.schema_registry import avro, json_schema, protobuf

    client = sr.SchemaRegistryClient({"url": registry.url})
    producer = Producer({"bootstrap.servers": stage.bootstrap, "client.id": "orders-writer"})
    produce = partial(_produce, producer)
    expected: Expected = {}
    for way in ("prefix", "header"):
        conf = {"schema.id.serializer": getattr(sr, f"{way}_schema_id_serializer")}
        topic = stage.topic(f"avro-{way}")
        serializer = avro.AvroSerializer(client, json.dumps(ORDER), conf=conf)
        produce(topic, serializer, ORDERS)
        expected[topic] = _expected(topic, "avro", ORDERS)
        topic = stage.topic(f"json-{way}")
        serializer = json_schema.JSONSerializer(json.dumps(ORDER_JSON), client, conf=conf)
        produce(topic, serializer, ORDERS)
        expected[topic] = _expected(topic, "json-schema", ORDERS)
        topic = stage.topic(f"protobuf-{way}")
        values = []
        for message in _messages():
            serializer = protobuf.ProtobufSerializer(type(message), client, conf=conf)
            produce(topic, serializer, [message])
            values.append(
                json_format.MessageToDict(
                    message,
                    preserving_proto_field_name=True,
                    always_print_fields_with_no_presence=True,
                )
            )
        expected[topic] = _expected(topic, "protobuf", values)
    assert producer.flush(60) == 0
    _consume(stage, list(expected), sum(len(each["values"]) for each in expected.values()))
    return expected


def _expected(topic: str, name: str, values: list[Any]) -> dict[str, Any]:
    return {"format": name, "schema": f"{topic}-value v1", "values": values}


def _messages() -> list[Any]:
    """Return messages of three types that one file declares, one inside another."""
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(
        name="shop/orders.proto", package="shop", syntax="proto3"
    )
    order = file.message_type.add(name="Order")
    order.field.add(name="id", number=1, type=field.TYPE_INT32, label=1)
    line = order.nested_type.add(name="Line")
    line.field.add(name="sku", number=1, type=field.TYPE_STRING, label=1)
    line.field.add(name="counts", number=2, type=field.TYPE_SINT32, label=3)
    order.field.add(
        name="lines", number=2, type=field.TYPE_MESSAGE, type_name=".shop.Order.Line", label=3
    )
    refund = file.message_type.add(name="Refund")
    refund.field.add(name="reason", number=1, type=field.TYPE_STRING, label=1)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    kinds = [
        message_factory.GetMessageClass(pool.FindMessageTypeByName(f"shop.{name}"))
        for name in ("Order", "Order.Line", "Refund")
    ]
    order_kind, line_kind, refund_kind = kinds
    lines = [line_kind(sku="lamp", counts=[1, -2, 300])]
    return [order_kind(id=5, lines=lines), lines[0], refund_kind(reason="broken"), order_kind()]


def _produce(producer: Any, topic: str, serializer: Any, values: list[Any]) -> None:
    from confluent_kafka.serialization import MessageField, SerializationContext

    for value in values:
        headers: list[tuple[str, str | bytes | None]] = []
        data = serializer(value, SerializationContext(topic, MessageField.VALUE, headers))
        producer.produce(topic, data, headers=headers)


def _consume(stage: Stage, topics: list[str], count: int) -> None:
    from confluent_kafka import Consumer

    consumer = Consumer(
        {
            "bootstrap.servers": stage.bootstrap,
            "group.id": stage.topic("readers"),
            "client.id": "orders-reader",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe(topics)
    got: list[Any] = []

    def take() -> bool:
        got.extend(each for each in consumer.consume(100, 0.5) if each.error() is None)
        return len(got) >= count

    until("all records", take)
    consumer.close()
