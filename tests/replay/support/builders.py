"""Builders of topologies, messages and steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from construct import Container

from cluster.client.broker_metadata import Broker, Leader, Topic, Topology
from dissector.engine.exchanges.captured_exchange import CapturedExchange
from dissector.protocol.apis import KEYS, api
from dissector.protocol.messages import Message
from dissector.protocol.schema import Field
from replay.model.step import Step


def uuid(number: int) -> UUID:
    return UUID(int=number)


def topology(topics: Mapping[str, int], nodes: int = 1, epoch: int = 5) -> Topology:
    """A topology with these topics (name to id), two partitions each."""
    target = Topology()
    target.brokers = {node: Broker(node, "127.0.0.1", 9000 + node) for node in range(nodes)}
    for name, number in topics.items():
        leaders = {partition: Leader(0, epoch) for partition in range(2)}
        target.topics[name] = Topic(name, uuid(number), leaders)
        target.topic_names[uuid(number)] = name
    return target


def _filled(fields: tuple[Field, ...], version: int, body: Mapping[str, Any]) -> dict[str, Any]:
    """The body, with zeros for missing fields of the version."""
    out = dict(body)
    for field in fields:
        if version in field.versions:
            value = body.get(field.name, ...)
            out[field.name] = field.zero(version) if value is ... else value
            if field.type == "[]struct" and value not in (None, ...):
                out[field.name] = [_filled(field.fields, version, each) for each in value]
            elif field.type == "struct" and value not in (None, ...):
                out[field.name] = _filled(field.fields, version, value)
    return out


def _message(name: str, version: int, body: Mapping[str, Any], kind: Any) -> Message:
    found = api(KEYS[name])
    assert found is not None
    schema = found.schema(kind)
    codec = schema.codec(version)
    data = codec.build(_filled(schema.fields, version, body))
    return Message(kind, data, len(data), found.key, version, body=codec.parse(data))


def request(name: str, version: int, body: Mapping[str, Any]) -> Message:
    return _message(name, version, body, "request")


def response(name: str, version: int, body: Mapping[str, Any]) -> Message:
    return _message(name, version, body, "response")


def step(name: str, version: int) -> Step:
    captured = CapturedExchange(0, "c:1", "b:1", KEYS[name], version, 1, None, b"", b"", True, 0, 0)
    return Step(0, captured)


def whole(name: str, version: int, body: Mapping[str, Any], kind: Any = "request") -> Container:
    """The body with all fields of the version."""
    found = _message(name, version, body, kind).body
    assert found is not None
    return found
