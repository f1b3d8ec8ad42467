"""
Produce requests that are refused for some of their partitions: only these are retried.

Clients do the same (Sender.java): without idempotence a broker would append the accepted ones
twice.
"""

from __future__ import annotations

from collections.abc import Callable

from construct import Container

from cluster.fields.field_layout import Scope
from replay.mapping.id_map import IdMap
from replay.model.outcome import RequestPart

_Partition = tuple[str | None, int]


def refused_partitions(response: Container, ids: IdMap) -> set[_Partition]:
    """
    Return captured topic and number of the partitions that a Produce response refuses.

    The set is empty if one of the topics is unknown: then the whole request must be retried.
    """
    found = {
        (_topic(topic, ids, is_live=True), each.index)
        for topic in response.responses
        for each in topic.partition_responses
        if each.error_code
    }
    return set() if any(topic is None for topic, _ in found) else found


def drop_accepted(body: Container, refused: set[_Partition], ids: IdMap) -> None:
    """Remove the partitions that need no retry from a captured Produce request."""
    topics = []
    for topic in body.topic_data:
        title = _topic(topic, ids, is_live=False)
        topic.partition_data = [e for e in topic.partition_data if (title, e.index) in refused]
        topics += [topic] if topic.partition_data else []
    body.topic_data = topics


def accepted_part(part: RequestPart) -> RequestPart | None:
    """Return the accepted partitions of a Produce part; None if the broker accepted none."""
    if part.response is None:
        return None
    accepted = {
        (_title(topic), each.index)
        for topic in part.response.responses
        for each in topic.partition_responses
        if not each.error_code
    }
    if not accepted:
        return None
    request = _trimmed(part.request, "topic_data", "partition_data", accepted.__contains__)
    response = _trimmed(part.response, "responses", "partition_responses", accepted.__contains__)
    return RequestPart(part.node, part.version, request, response)


def _trimmed(
    body: Container, topics: str, partitions: str, is_kept: Callable[[tuple[object, int]], bool]
) -> Container:
    trimmed = []
    for topic in body[topics]:
        elements = [each for each in topic[partitions] if is_kept((_title(topic), each.index))]
        trimmed += [Container({**topic, partitions: elements})] if elements else []
    return Container({**body, topics: trimmed})


def _title(topic: Container) -> object:
    return topic.get("name") or topic.get("topic_id")


def _topic(topic: Container, ids: IdMap, *, is_live: bool) -> str | None:
    scope = Scope(topic=topic.get("name"), topic_id=topic.get("topic_id"))
    return ids.topic_of(ids.captured_scope(scope) if is_live else scope)
