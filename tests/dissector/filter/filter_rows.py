"""Rows for tests of filters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

TOPIC_ID = UUID("3f2504e0-4f89-11d3-9a0c-0305e82c3301")


@dataclass
class FakeRow:
    columns: Mapping[str, Any]
    bodies: Mapping[str, Any] = field(default_factory=dict)
    bodies_asked: int = 0

    def column(self, name: str) -> object:
        return self.columns[name]

    def body(self, kind: str) -> Mapping[str, Any] | None:
        self.bodies_asked += 1
        return self.bodies.get(kind)


def produce(**columns: Any) -> FakeRow:
    """A Produce exchange with two partitions, one with an error."""
    return FakeRow(
        {
            "capture": "a.pcap",
            "connection": 3,
            "client": "10.0.0.1:50000",
            "broker": "[fd00::1]:9092",
            "api_key": 0,
            "api": "Produce",
            "api_version": 9,
            "correlation_id": 7,
            "client_id": "rdkafka",
            "status": "answered",
            "request_time_ns": 1_700_000_000_000_000_000,
            "response_time_ns": 1_700_000_000_001_000_000,
            "latency_ms": 1.0,
            "request_bytes": 345,
            "response_bytes": 60,
            "errors": ["NOT_LEADER_OR_FOLLOWER", "ERROR_999"],
            "topics": ["orders", "pay\udcff"],
            "problems": [],
        }
        | columns,
        {
            "request": {
                "transactional_id": None,
                "acks": -1,
                "timeout_ms": 500,
                "topic_data": [
                    {
                        "name": "orders",
                        "partition_data": [
                            {"index": 0, "records": b"\x00\xbe\xef blue"},
                            {"index": 1, "records": None},
                        ],
                    },
                    {"name": "none", "partition_data": []},
                ],
            },
            "response": {
                "throttle_time_ms": 0,
                "responses": [
                    {
                        "topic_id": TOPIC_ID,
                        "partition_responses": [{"error_code": 0}, {"error_code": 6}],
                    }
                ],
            },
        },
    )
