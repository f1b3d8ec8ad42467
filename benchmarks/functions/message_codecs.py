"""Single messages: kafkashark's codec against plain Construct, kafka-python and kio."""

from __future__ import annotations

import importlib
import io
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import construct

from benchmarks.timing import Row, call_us
from dissector import codec
from dissector.protocol.api import Kind
from dissector.protocol.apis import api
from dissector.protocol.schema import Field, split_tagged

_TARGETS = {"plain Construct": 5.0, "kafka-python": 1.0}
_RECORDS = bytes(150)
_PRODUCE = {
    "transactional_id": None,
    "acks": -1,
    "timeout_ms": 30000,
    "topic_data": [
        {
            "name": "orders",
            "partition_data": [{"index": i, "records": _RECORDS} for i in range(3)],
        }
    ],
}
_FETCH = {
    "throttle_time_ms": 0,
    "error_code": 0,
    "session_id": 7,
    "responses": [
        {
            "topic": "orders",
            "partitions": [
                {
                    "partition_index": i,
                    "error_code": 0,
                    "high_watermark": 1000,
                    "last_stable_offset": 1000,
                    "log_start_offset": 0,
                    "aborted_transactions": [],
                    "preferred_read_replica": -1,
                    "records": _RECORDS,
                }
                for i in range(3)
            ],
        }
    ],
}
_METADATA = {
    "throttle_time_ms": 0,
    "brokers": [
        {"node_id": i, "host": f"broker-{i}.example", "port": 9092, "rack": "a"} for i in range(3)
    ],
    "cluster_id": "a-cluster",
    "controller_id": 1,
    "topics": [
        {
            "error_code": 0,
            "name": f"topic-{topic}",
            "is_internal": False,
            "partitions": [
                {
                    "error_code": 0,
                    "partition_index": i,
                    "leader_id": i,
                    "leader_epoch": 5,
                    "replica_nodes": [0, 1, 2],
                    "isr_nodes": [0, 1, 2],
                    "offline_replicas": [],
                }
                for i in range(3)
            ],
            "topic_authorized_operations": -(2**31),
        }
        for topic in range(3)
    ],
    "cluster_authorized_operations": -(2**31),
}

_MESSAGES: tuple[tuple[str, int, int, Kind, dict[str, Any], str], ...] = (
    ("Produce v9 request", 0, 9, "request", _PRODUCE, "producer.ProduceRequest"),
    ("Fetch v12 response", 1, 12, "response", _FETCH, "consumer.FetchResponse"),
    ("Metadata v9 response", 3, 9, "response", _METADATA, "metadata.MetadataResponse"),
)
"""Cases with the class of kafka-python; three partitions of three topics, or of one."""


def rows() -> Iterator[Row]:
    """Time parsing and building of some messages."""
    for name, key, version, kind, body, kafka_name in _MESSAGES:
        ours, declared = codec(key, version, kind), api(key)
        assert declared is not None
        data = ours.build(body)
        value = ours.parse(data)
        own = partial(ours.parse, data), partial(ours.build, value)
        own_us = [call_us(call) for call in own]
        for peer, calls in (
            ("plain Construct", _plain(declared.schema(kind).fields, version, data)),
            ("kafka-python", _kafka_python(kafka_name, version, data)),
            ("kio", _kio(key, version, kind, data)),
        ):
            for verb, us, call in zip(("parse", "build"), own_us, calls, strict=True):
                peer_us = call_us(call)
                what = f"{verb} one {name} of {len(data)} bytes"
                figures = f"{us:.1f} us against {peer_us:.1f} us"
                target = _TARGETS.get(peer) if verb == "parse" else None
                yield Row(what, peer, peer_us / us, figures, target)


_Calls = tuple[Callable[[], object], Callable[[], object]]
"""Calls that parse and build the message."""


def _kafka_python(name: str, version: int, data: bytes) -> _Calls:
    module, _, which = name.partition(".")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kafka = getattr(importlib.import_module(f"kafka.protocol.{module}"), which)
    parsed = kafka.decode(data, version=version)
    value = kafka(version=version, **{field: getattr(parsed, field) for field in parsed.to_dict()})
    assert value.encode(version=version) == data
    return lambda: kafka.decode(data, version=version), lambda: value.encode(version=version)


def _kio(key: int, version: int, kind: Kind, data: bytes) -> _Calls:
    from kio import index
    from kio.serial import entity_reader, entity_writer

    load = index.load_request_schema if kind == "request" else index.load_response_schema
    schema = load(key, version)
    read, write = entity_reader(schema), entity_writer(schema)
    value = read(data, 0)[0]
    return lambda: read(data, 0), lambda: write(io.BytesIO(), value)


def _plain(fields: tuple[Field, ...], version: int, data: bytes) -> _Calls:
    """Return calls for a flexible version, declared by hand in Construct."""
    struct = _struct(fields, version)
    value = struct.parse(data)
    assert struct.build(value) == data
    return lambda: struct.parse(data), lambda: struct.build(value)


def _struct(fields: tuple[Field, ...], version: int) -> construct.Struct:
    plain, _ = split_tagged(fields, version)
    return construct.Struct(*(each.name / _of(each, version) for each in plain), "tags" / _TAGS)


def _of(each: Field, version: int) -> construct.Construct:
    if each.type == "[]struct":
        return _compact(lambda n: construct.Array(n, _struct(each.fields, version)))
    if each.type.startswith("[]"):
        return _compact(lambda n: construct.Array(n, _NUMBERS[each.type[2:]]))
    return _NUMBERS.get(each.type) or _compact(construct.Bytes)


def _compact(item: Callable[[Any], construct.Construct]) -> construct.Construct:
    """Return a construct of length plus one and items; 0 is null."""
    return construct.FocusedSeq(
        "content",
        "count" / construct.Rebuild(construct.VarInt, _count),
        "content"
        / construct.IfThenElse(
            construct.this.count == 0, construct.Pass, item(lambda this: this.count - 1)
        ),
    )


def _count(this: Any) -> int:
    return 0 if this.content is None else len(this.content) + 1


_NUMBERS = {
    "bool": construct.Flag,
    "int16": construct.Int16sb,
    "int32": construct.Int32sb,
    "int64": construct.Int64sb,
}
_TAGS = construct.PrefixedArray(
    construct.VarInt,
    construct.Struct(
        "tag" / construct.VarInt,
        "data" / construct.Prefixed(construct.VarInt, construct.GreedyBytes),
    ),
)
