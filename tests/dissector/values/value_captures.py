"""Captures with keys and values of known schemas, which are in the capture itself."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from uuid import UUID

from dissector.protocol.records import Record, build_records, new_batch
from tests import tcp_captures
from tests.dissector.cli.cli_traffic import PRODUCE, request_frame, response_frame
from tests.tcp_captures import Wire

SCHEMA = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": "string"},
        {"name": "items", "type": {"type": "array", "items": "Item"}},
    ],
}
ITEM = {"type": "record", "name": "Item", "fields": [{"name": "sku", "type": "string"}]}
GUID = UUID("63836c98-85e0-4bef-840b-2615e9991c8b")
PREFIX = b"\x00" + struct.pack(">i", 7)
KEY_ID, UNKNOWN_ID = b"\x00\x00\x00\x00\x09", b"\x00\x00\x00\x00\x63"
COUNT = 120
"""Exchanges with orders; so many exchanges are read in bulk."""

ENTRIES = [
    {"subject": "item", "version": 1, "id": 3, "schema": json.dumps(ITEM)},
    {
        "subject": "orders-value",
        "version": 4,
        "id": 7,
        "guid": str(GUID),
        "schema": json.dumps(SCHEMA),
        "references": [{"name": "Item", "subject": "item", "version": 1}],
    },
    {"subject": "orders-key", "version": 1, "id": 9, "schema": '"string"'},
]


def text(value: str) -> bytes:
    content = value.encode()
    return bytes([2 * len(content)]) + content


def order(number: int) -> bytes:
    """Return an order: its items have the number and the next one."""
    items = b"\x04" + text(f"s{number}") + text(f"s{number + 1}") + b"\x00"
    return bytes([2 * number % 128]) + text("Ann" if number % 2 else "Bob\N{BULLET}") + items


def orders(number: int) -> list[Record]:
    """Return the same order twice: with the id before the value, and with the GUID in a header."""
    header = (("__value_schema_id", b"\x01" + GUID.bytes),)
    key = KEY_ID + text(f"k{number}")
    return [
        Record(key=key, value=PREFIX + order(number), timestamp=1),
        Record(key=key, value=order(number), timestamp=1, headers=header),
    ]


def produced(
    topic: str, records: list[Record], number: int, wire: tcp_captures.WireConnection
) -> None:
    data = build_records([new_batch(records)])
    topics = [{"name": topic, "partition_data": [{"index": 0, "records": data}]}]
    wire.client(request_frame(PRODUCE, 9, number, acks=-1, topic_data=topics))
    answer = [{"name": topic, "partition_responses": [{"index": 0, "base_offset": number}]}]
    wire.broker(response_frame(PRODUCE, 9, number, responses=answer))


def produce_values(wire: Wire, topic: str, values: list[bytes]) -> None:
    """Produce values to a topic, on a connection of its own."""
    produced(topic, [Record(value=each) for each in values], 1, wire.connect().syn())


def write_values(path: Path) -> Path:
    """Write a capture with orders, the registry's topic behind them, and other values."""
    wire = Wire()
    connection = wire.connect().syn()
    for number in range(COUNT):
        produced("orders", orders(number % 60), number, connection)
    broken = [Record(value=PREFIX + order(5) + b"!"), Record(value=UNKNOWN_ID + b"abcd")]
    plain = [Record(key=b"5", value=b'{"user": {"id": 5}}'), Record(value=b"a\xff")]
    produced("others", [*broken, *plain, Record(value=None)], COUNT, connection)
    entries = [Record(key=b"{}", value=json.dumps(each).encode()) for each in ENTRIES]
    produced("_schemas", entries, COUNT + 1, connection)
    tcp_captures.write(path, wire.packets)
    return path
