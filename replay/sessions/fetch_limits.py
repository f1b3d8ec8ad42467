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

TopicKey = str | int | None
"""The name of a topic, or the number of its id, whose hash costs less; None without both."""

LimitKey = tuple[TopicKey, int]
"""Topic and partition."""

Fields = Mapping[str, Any]
"""The fields of a topic or a partition in a request."""

CLOSED = 1
"""The limit of a partition without captured records, in bytes."""

_MOST_DOUBLINGS = 16
_FIRST_WITH_WHOLE_BATCHES = 3
"""From this version on a broker returns a first batch that is above the limits (KIP-74)."""


def fetch_limits(
    version: int, captured: Container | None, attempt: int = 0
) -> Mapping[LimitKey, int] | None:
    """
    Return the limits of the partitions to ask for, all if there are none; None without limits.

    Args:
        version: The version of a captured Fetch.
        captured: The body of its response; None without one.
        attempt: The number of earlier attempts; each doubles the limits.
    """
    if version < _FIRST_WITH_WHOLE_BATCHES or captured is None:
        return None
    doublings = min(attempt, _MOST_DOUBLINGS)
    return {
        (topic_key(topic), each["partition_index"]): len(each["records"] or b"") << doublings
        or CLOSED
        for topic in captured["responses"]
        for each in topic["partitions"]
        if each["records"] or _is_notable(each)
    }


def _is_notable(partition: Container) -> bool:
    """Return whether a partition without records has an error, or sends its reader elsewhere."""
    diverging = partition.get("diverging_epoch") or {}
    return bool(
        partition["error_code"]
        or partition.get("preferred_read_replica", -1) >= 0
        or diverging.get("end_offset", -1) >= 0
    )


def topic_key(topic: Fields) -> TopicKey:
    """Return the key of a topic in a request or response."""
    name: str | None = topic.get("topic")
    if name:
        return name
    topic_id = topic.get("topic_id")
    return None if topic_id is None else topic_id.int


def limited(partition: Fields, limit: int) -> Fields:
    """Return a copy of a partition of a request, with a limit if its client set no lower one."""
    copy = dict(partition)
    if limit < copy["partition_max_bytes"]:
        copy["partition_max_bytes"] = limit
    return copy


def topics_of(
    elements: Mapping[TopicKey, Fields], partitions: Mapping[LimitKey, Fields]
) -> list[Container]:
    """
    Return the topics of a request.

    Args:
        elements: Topic -> its element in a request, for the other fields.
        partitions: The partitions.
    """
    by_topic: dict[TopicKey, list[Container]] = {}
    for (name, _), each in partitions.items():
        by_topic.setdefault(name, []).append(Container(each))
    return [Container(elements[name], partitions=of) for name, of in by_topic.items()]


def forgotten_topics(
    elements: Mapping[TopicKey, Fields], partitions: Collection[LimitKey]
) -> list[Container]:
    """Return the topics that a request takes out of its session (KIP-227)."""
    by_topic: dict[TopicKey, list[int]] = {}
    for name, number in partitions:
        by_topic.setdefault(name, []).append(number)
    return [
        Container(
            {key: elements[name][key] for key in ("topic", "topic_id") if key in elements[name]},
            partitions=sorted(of),
        )
        for name, of in by_topic.items()
    ]
