"""
Limits of replayed Fetch requests: what the captured response held, for each partition.

A broker answers a Fetch as soon as any of its partitions has records, with at least one whole batch
(KIP-74). A replayed one is not sent at the same position as the captured one, so it would return
other records, of other partitions, and some of them again and again. So a Fetch asks only for the
partitions of which the captured response had records, and for as many bytes: it waits for these
records, and gets no others. Each further attempt doubles the bytes, as the target may compress
otherwise. A Fetch without captured records asks for all partitions, a byte each.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from construct import Container

from dissector.engine.exchanges.captured_exchange import CapturedExchange

LimitKey = tuple[Any, int]
"""Topic name or id, and partition."""

CLOSED = 1
"""The limit of a partition without captured records, in bytes."""

_MOST_DOUBLINGS = 16
_FIRST_WITH_WHOLE_BATCHES = 3
"""From this version on a broker returns a first batch that is above the limits (KIP-74)."""


def fetch_limits(captured: CapturedExchange, attempt: int = 0) -> Mapping[LimitKey, int] | None:
    """
    Return the limits of the partitions to ask for, all if there are none; None without limits.

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
    return {
        (title(topic), each.partition_index): _limit(each, attempt)
        for topic in response.body.responses
        for each in topic.partitions
        if each.records or _is_notable(each)
    }


def _limit(partition: Container, attempt: int) -> int:
    return len(partition.records or b"") << min(attempt, _MOST_DOUBLINGS) or CLOSED


def _is_notable(partition: Container) -> bool:
    """Return whether a partition without records has an error, or sends its reader elsewhere."""
    diverging = partition.get("diverging_epoch") or {}
    return bool(
        partition.error_code
        or partition.get("preferred_read_replica", -1) >= 0
        or diverging.get("end_offset", -1) >= 0
    )


def title(topic: Container) -> Any:
    """Return the name of a topic in a request or response, or its id."""
    return topic.get("topic") or topic.get("topic_id")


def limited(partition: Container, limit: int) -> Container:
    """Return a copy of a partition of a request, with a limit if its client set no lower one."""
    lower = min(partition.partition_max_bytes, limit)
    return Container(partition, partition_max_bytes=lower)


def topics_of(
    elements: Mapping[Any, Container], partitions: Mapping[LimitKey, Container]
) -> list[Container]:
    """
    Return the topics of a request.

    Args:
        elements: Name or id -> its element in a request, for the other fields.
        partitions: The partitions.
    """
    by_topic: dict[Any, list[Container]] = {}
    for (name, _), each in partitions.items():
        by_topic.setdefault(name, []).append(Container(each))
    return [Container(elements[name], partitions=of) for name, of in by_topic.items()]


def forgotten_topics(
    elements: Mapping[Any, Container], partitions: Collection[LimitKey]
) -> list[Container]:
    """Return the topics that a request takes out of its session (KIP-227)."""
    by_topic: dict[Any, list[int]] = {}
    for name, number in partitions:
        by_topic.setdefault(name, []).append(number)
    return [
        Container(
            {key: elements[name][key] for key in ("topic", "topic_id") if key in elements[name]},
            partitions=sorted(of),
        )
        for name, of in by_topic.items()
    ]
