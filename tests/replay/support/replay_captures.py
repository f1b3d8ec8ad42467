"""Captures for tests of replay: written here, or shipped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dissector.protocol.apis import KEYS
from tests.default_frames import request, response
from tests.tcp_captures import Wire, WireConnection, write

SHIPPED = Path(__file__).parents[3] / "captures"


def saved(folder: Path, wire: Wire) -> str:
    return write(folder / "made.pcap", wire.packets)


def exchange(connection: WireConnection, request: bytes, response: bytes = b"") -> WireConnection:
    connection.client(request)
    return connection.broker(response) if response else connection


def added_partition(error: int = 0) -> dict[str, Any]:
    """Return the fields of the response to AddPartitionsToTxn of `left_open`."""
    results = [{"partition_index": 0, "partition_error_code": error}]
    topics = [{"name": "orders", "results_by_partition": results}]
    return {"throttle_time_ms": 0, "error_code": 0, "results_by_topic_v3_and_below": topics}


def left_open(folder: Path, timeout_ms: int = 1000) -> str:
    """Begin a transaction without an end."""
    wire = Wire()
    key = KEYS["AddPartitionsToTxn"]
    topics = [{"name": "orders", "partitions": [0]}]
    names = {
        "v3_and_below_transactional_id": "t",
        "v3_and_below_producer_id": 4,
        "v3_and_below_producer_epoch": 0,
        "v3_and_below_topics": topics,
    }
    init = KEYS["InitProducerId"]
    connection = wire.connect().syn()
    began = response(init, 3, 1, producer_id=4, producer_epoch=0)
    exchange(
        connection,
        request(init, 3, 1, transactional_id="t", transaction_timeout_ms=timeout_ms),
        began,
    )
    exchange(connection, request(key, 3, 2, **names), response(key, 3, 2, **added_partition()))
    return saved(folder, wire)
