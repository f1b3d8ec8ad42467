"""
Limits of replayed Fetch requests: what the captured response held, for each partition.

A late Fetch would get the rest of the log, again and again: of 20 consumers that lag by a second
each request would return, and compare, a second of records. Twice the captured bytes leave room for
records in another order; partitions without captured records get a byte, as a broker returns a
whole batch of the first partition anyway (KIP-74).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from construct import Container

from dissector.engine.exchanges.captured_exchange import CapturedExchange

LimitKey = tuple[Any, int]
"""Topic name or id, and partition."""

CLOSED = 1
"""The limit of a partition without captured records, in bytes."""

_ROOM = 2
"""The limit as a multiple of the captured bytes."""

_FIRST_WITH_WHOLE_BATCHES = 3
"""From this version on a broker returns a first batch that is above the limits (KIP-74)."""


def fetch_limits(captured: CapturedExchange, attempt: int = 0) -> Mapping[LimitKey, int] | None:
    """
    Return the limits of the partitions with captured records; None if nothing can be limited.

    Args:
        captured: A captured Fetch.
        attempt: The number of earlier attempts; each doubles the limits.
    """
    response = captured.response_message()
    if (
        captured.api_version < _FIRST_WITH_WHOLE_BATCHES
        or response is None
        or response.body is None
    ):
        return None
    room = _ROOM << min(attempt, 16)
    return {
        (title(topic), each.partition_index): len(each.records) * room
        for topic in response.body.responses
        for each in topic.partitions
        if each.records
    }


def title(topic: Container) -> Any:
    """Return the name of a topic in a request or response, or its id."""
    return topic.get("topic") or topic.get("topic_id")


def set_limit(partition: Container, limit: int) -> None:
    """Limit a partition of a request, if its client set no lower limit."""
    partition.partition_max_bytes = min(partition.partition_max_bytes, limit)
