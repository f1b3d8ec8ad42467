from __future__ import annotations

import json
from typing import Any

from dissector.protocol.records import Record
from tests.conform.produce_scenes import batch, produce
from tests.conform.scene import Scene, SceneConnection, breaks, keeps

PRODUCE = 0


def record_schema(*fields: dict[str, Any]) -> str:
    return json.dumps({"type": "record", "name": "Order", "fields": list(fields)})


ID = {"name": "id", "type": "long"}
NOTE = {"name": "note", "type": "string", "default": ""}
NAME = {"name": "name", "type": "string"}

VERSIONS = {
    7: record_schema(ID),
    8: record_schema(ID, NOTE),
    9: record_schema(ID, NAME),
}
"""Schemas by id; their versions are in this order."""


def with_schemas(*values: Record | bytes) -> Scene:
    """Return a scene with the registry's topic, then a record for each value."""
    scene = Scene()
    connection = scene.connect()
    entries = [
        {"subject": "orders-value", "version": version, "id": number, "schema": text}
        for version, (number, text) in enumerate(VERSIONS.items(), 1)
    ]
    registered = [Record(key=b"{}", value=json.dumps(each).encode()) for each in entries]
    topic_produce(connection, 1, "_schemas", batch(registered).to_bytes())
    records = [each if isinstance(each, Record) else Record(value=each) for each in values]
    produce(connection, 2, batch(records).to_bytes())
    return scene


def topic_produce(connection: SceneConnection, number: int, topic: str, data: bytes) -> None:
    partitions = [{"index": 0, "records": data}]
    topics = [{"name": topic, "partition_data": partitions}]
    connection.request(PRODUCE, 9, number, acks=-1, timeout_ms=1000, topic_data=topics)
    answer = {"name": topic, "partition_responses": [{"index": 0, "base_offset": 0}]}
    connection.response(PRODUCE, 9, number, responses=[answer])


def prefixed(number: int, content: bytes) -> bytes:
    return b"\x00" + number.to_bytes(4, "big") + content


@keeps("D01")
@keeps("D02")
@keeps("D03")
@keeps("D04")
@keeps("D05")
def compatible_versions() -> Scene:
    return with_schemas(prefixed(7, b"\x0a"), prefixed(8, b"\x0a\x02a"))


@breaks("D01")
def a_byte_too_many() -> Scene:
    return with_schemas(prefixed(7, b"\x0a!"))


@breaks("D02")
def an_id_of_no_schema() -> Scene:
    return with_schemas(prefixed(99, b"\x0a!??"))


@breaks("D03")
def another_schema_in_the_header() -> Scene:
    header = (("__value_schema_id", prefixed(8, b"")),)
    return with_schemas(Record(value=prefixed(7, b"\x0a"), headers=header))


@breaks("D04")
def json_among_avro() -> Scene:
    return with_schemas(prefixed(7, b"\x0a"), b'{"id": 5}')


@breaks("D05")
def a_field_without_default() -> Scene:
    return with_schemas(prefixed(8, b"\x0a\x02a"), prefixed(9, b"\x0a\x02a"))


@breaks("D05")
def the_newer_version_first() -> Scene:
    return with_schemas(prefixed(9, b"\x0a\x02a"), prefixed(8, b"\x0a\x02a"))
