"""Artificial traffic for tests of the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from dissector.protocol.api import Kind
from dissector.protocol.apis import api
from dissector.protocol.records import Record, build_records, new_batch, new_message_set
from dissector.protocol.schema import Field
from tests import default_frames
from tests.tcp_captures import START_NS, STEP_NS, Wire

PRODUCE, FETCH, METADATA, HEARTBEAT, API_VERSIONS = 0, 1, 3, 12, 18
ORDERS_ID = UUID("5f7d1f1e-9d1c-4f43-8d6b-0c1a2b3c4d5e")

PRODUCED = build_records(
    [
        new_batch(
            [
                Record(key=b"anna", value=b'{"lamp": 1}', timestamp=1_700_000_000_000),
                Record(
                    key=b"\xff\x00",
                    value=None,
                    timestamp=1_700_000_000_005,
                    headers=(("trace", b"\xfe"), ("lang", b"de"), ("none", None)),
                ),
            ],
            codec="zstd",
            producer_id=7,
            producer_epoch=1,
            base_sequence=40,
        )
    ]
)
FETCHED = build_records([new_batch([Record(value="grüße".encode(), timestamp=5)], base_offset=12)])
OLD = build_records(new_message_set([Record(key=b"k", value=b"v", timestamp=9)], magic=1))

HTTP = b"GET /kafka HTTP/1.1\r\nHost: example.org\r\n\r\n", b"HTTP/1.1 204 No Content\r\n\r\n"


def request_frame(
    key: int, version: int, number: int, /, client_id: str | None = "shop", **values: Any
) -> bytes:
    """Return a request; missing fields are zero, at every depth."""
    whole = _filled(_fields(key, "request"), version, values)
    return default_frames.request(key, version, number, client_id, **whole)


def response_frame(key: int, version: int, number: int, /, **values: Any) -> bytes:
    """Return a response; missing fields are zero."""
    whole = _filled(_fields(key, "response"), version, values)
    return default_frames.response(key, version, number, **whole)


def shop() -> Wire:
    """
    Return three connections with all kinds of exchanges.

    0 speaks Kafka: answered with and without errors, acks = 0, an orphan, a body that does not fit,
    unanswered. 1 speaks HTTP. 2 speaks Kafka over IPv6 in a VLAN.
    """
    wire = Wire()
    connection = wire.connect().syn()
    connection.client(request_frame(API_VERSIONS, 3, 1, client_software_name="test"))
    connection.broker(
        response_frame(API_VERSIONS, 3, 1, api_keys=[{"api_key": 0, "max_version": 9}])
    )
    data = [{"name": "orders", "partition_data": [{"index": 3, "records": PRODUCED}]}]
    connection.client(request_frame(PRODUCE, 9, 2, acks=-1, timeout_ms=1500, topic_data=data))
    refused = [{"index": 3, "error_code": 6, "base_offset": -1}]
    connection.broker(
        response_frame(
            PRODUCE, 9, 2, responses=[{"name": "orders", "partition_responses": refused}]
        )
    )
    connection.client(request_frame(PRODUCE, 9, 3, acks=0, topic_data=data))
    partition = [{"partition": 3, "fetch_offset": 12}]
    connection.client(
        request_frame(FETCH, 13, 4, topics=[{"topic_id": ORDERS_ID, "partitions": partition}])
    )
    got = [{"partition_index": 3, "high_watermark": 13, "records": FETCHED}]
    connection.broker(
        response_frame(FETCH, 13, 4, responses=[{"topic_id": ORDERS_ID, "partitions": got}])
    )
    connection.broker(response_frame(HEARTBEAT, 4, 77))
    # Only this response has the name of the topic id.
    topics = [{"name": "orders", "topic_id": ORDERS_ID, "partitions": [{"partition_index": 3}]}]
    connection.client(request_frame(METADATA, 12, 5, topics=None))
    connection.broker(response_frame(METADATA, 12, 5, topics=topics))
    connection.client(malformed_heartbeat(6)).broker(response_frame(HEARTBEAT, 4, 6))
    connection.client(request_frame(HEARTBEAT, 4, 7, group_id="g", member_id="m"))

    other = wire.connect(port=40000, broker_port=80).syn()
    other.client(HTTP[0]).broker(HTTP[1]).fin()

    hosts = "fd00::1", "fd00::2"
    third = wire.connect(port=50001, hosts=hosts, vlan=7).syn()
    data = [{"name": "old", "partition_data": [{"index": 0, "records": OLD}]}]
    third.client(request_frame(PRODUCE, 2, 1, client_id=None, acks=1, topic_data=data))
    third.broker(
        response_frame(
            PRODUCE, 2, 1, responses=[{"name": "old", "partition_responses": [{"index": 0}]}]
        )
    )
    third.fin()
    return wire


def malformed_heartbeat(number: int) -> bytes:
    """Return a Heartbeat with a group id longer than the message."""
    good = request_frame(HEARTBEAT, 4, number, group_id="g")
    at = good.index(b"\x02g")
    return good[:at] + b"\x7f" + good[at + 1 :]


def at_ns(packet: int) -> int:
    """Return the time of a packet in nanoseconds."""
    return START_NS + packet * STEP_NS


def _fields(key: int, kind: Kind) -> Sequence[Field]:
    found = api(key)
    assert found is not None
    return found.schema(kind).fields


def _filled(fields: Sequence[Field], version: int, values: Mapping[str, Any]) -> dict[str, Any]:
    there = [field for field in fields if version in field.versions]
    unknown = values.keys() - {field.name for field in there}
    assert not unknown, f"no such fields in version {version}: {unknown}"
    return {
        field.name: _value(field, version, values[field.name])
        if field.name in values
        else field.zero(version)
        for field in there
    }


def _value(field: Field, version: int, value: Any) -> Any:
    if not field.fields or value is None:
        return value
    if isinstance(value, list):
        return [_filled(field.fields, version, each) for each in value]
    return _filled(field.fields, version, value)
