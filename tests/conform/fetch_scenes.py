"""Scenes of a consumer of one topic, with and without a fetch session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from tests.conform.scene import SceneConnection

FETCH = 1
SESSION = 77
ORDERS = UUID(int=7)


def fetch_request(
    connection: SceneConnection,
    number: int,
    offsets: Mapping[int, int],
    *,
    version: int = 11,
    session: tuple[int, int] = (0, -1),
    **values: Any,
) -> None:
    """Fetch partitions of the topic from these offsets on; `session` is id and epoch."""
    parts = [
        {"partition": partition, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
        for partition, offset in offsets.items()
    ]
    topics = [{**_topic(version), "partitions": parts}] if parts else []
    usual: dict[str, Any] = {"max_wait_ms": 500, "topics": topics}
    if version < 15:
        usual["replica_id"] = -1
    if version >= 7:
        usual |= {"session_id": session[0], "session_epoch": session[1]}
    connection.request(FETCH, version, number, **usual | values)


def fetch_response(
    connection: SceneConnection,
    number: int,
    partitions: Mapping[int, Mapping[str, Any]],
    *,
    version: int = 11,
    **values: Any,
) -> None:
    """Send a response with these partitions; by default logs have offsets 0 to 100."""
    usual = {"high_watermark": 100, "last_stable_offset": 100, "aborted_transactions": None}
    usual |= {"log_start_offset": 0, "preferred_read_replica": -1}
    if version < 11:
        del usual["preferred_read_replica"]
    parts = [{"partition_index": number, **usual, **each} for number, each in partitions.items()]
    responses = [{**_topic(version), "partitions": parts}] if parts else []
    connection.response(FETCH, version, number, responses=responses, **values)


def _topic(version: int) -> dict[str, Any]:
    return {"topic_id": ORDERS} if version >= 13 else {"topic": "orders"}
