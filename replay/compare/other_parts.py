"""
Differences caused by requests of other parts of the capture, played by other processes.

No process knows when the requests of the others are answered, nor which offsets their records get.
So a response that depends on their changes may show any state of it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any
from uuid import UUID

from dissector.engine.exchanges.captured_exchange import CapturedExchange
from dissector.protocol.error_codes import error_code
from dissector.protocol.messages import Message
from replay.compare.record_diff import RETURNED_TWICE, TIMES
from replay.mapping.id_map import IdMap
from replay.model.outcome import Difference
from replay.order.read_write_sets import (
    COMMUTING,
    PARTITION_APIS,
    TOPICS,
    Resource,
    read_write_sets_of,
)
from replay.order.topic_lives import deletion_of

_LISTED = COMMUTING | {TOPICS}
"""Resources that stand for whole lists: a response depends on them only if it lists them."""

_RECORD_KINDS = frozenset({"partition", "start"})

_OF_LIVES = _RECORD_KINDS | {"topic"}
"""Kinds of resources that belong to a life of a topic, which is next in them."""

_TOPIC_ERRORS = frozenset(
    error_code(name)
    for name in (
        "UNKNOWN_TOPIC_OR_PARTITION",
        "UNKNOWN_TOPIC_ID",
        "INCONSISTENT_TOPIC_ID",
        "TOPIC_ALREADY_EXISTS",
        "NOT_LEADER_OR_FOLLOWER",
        "LEADER_NOT_AVAILABLE",
    )
)
"""Errors for a topic that another process creates or deletes sooner or later."""

_PRODUCED_OFFSET = ".base_offset"

_ENDS = (".high_watermark", ".last_stable_offset")
_TIMES = tuple(f"].{name}" for name in TIMES)
_TIMED_RECORD = re.compile(rf"\[(\d+)\]\.({'|'.join(TIMES)})$")


def follow_from_other_parts(
    captured: CapturedExchange, response: Message, differences: Sequence[Difference], ids: IdMap
) -> bool:
    """
    Return whether all differences follow from what other parts of the capture change.

    Args:
        captured: The captured request.
        response: The captured response.
        differences: The differences of the target's response.
        ids: The id mapping.
    """
    if not ids.foreign:
        return False
    shared = set(_shared_resources(captured, response, ids))
    topics = {resource[1] for resource in shared if resource[0] == "topic"}
    partitions = {resource[1:] for resource in shared if resource[0] in _RECORD_KINDS}
    if any(resource[0] not in _OF_LIVES for resource in shared):
        return True
    changed = {_record_of(each.path) for each in differences if not each.path.endswith(_TIMES)}
    if any(
        _is_contradiction(each) or _is_of_own_record(each, changed, partitions, ids)
        for each in differences
    ):
        return False
    return all(
        _is_of_partition(each, partitions, captured.api) or _is_of_topic(each, topics, captured.api)
        for each in differences
    )


def is_shared_log(topic: str, partition: int, ids: IdMap) -> bool:
    """Return whether other parts of the capture change a partition, by its captured name."""
    return ("partition", topic, partition) in ids.foreign or is_deleted_elsewhere(topic, ids)


def is_deleted_elsewhere(topic: str, ids: IdMap) -> bool:
    """
    Return whether another part of the capture deletes a topic, by its captured name.

    Nobody knows which of the records and commits of this part were before that.
    """
    return deletion_of(topic) in ids.foreign


def _shared_resources(
    captured: CapturedExchange, response: Message, ids: IdMap
) -> Iterator[Resource]:
    """Yield the state that a response depends on and other parts change or, of partitions, read."""
    sets = read_write_sets_of(captured.request_message(), response)
    for resource in (*sets.reads, *(sets.writes - _LISTED)):
        named = _by_name(resource, ids)
        is_changed = named in ids.foreign or ("partition", *named[1:]) in ids.foreign
        if is_changed or (named[0] in _OF_LIVES and is_deleted_elsewhere(named[1], ids)):
            yield named


def _by_name(resource: Resource, ids: IdMap) -> Resource:
    if len(resource) < 2 or not isinstance(resource[1], UUID):
        return resource
    name = ids.captured_topics.topic_name(resource[1])
    return resource if name is None else (resource[0], name, *resource[2:])


def _is_contradiction(difference: Difference) -> bool:
    """Return whether a response contradicts itself."""
    # Of these offsets only a contradiction to the records beside them is a difference.
    path, replayed = difference.path, str(difference.replayed)
    return path.endswith(_ENDS) or replayed.endswith(RETURNED_TWICE)


def _is_of_own_record(
    difference: Difference,
    changed: Collection[str],
    partitions: Collection[tuple[Any, ...]],
    ids: IdMap,
) -> bool:
    """
    Return whether a record of this part has another timestamp, and the same content.

    A record of another part with this content may be another one, written sooner or later.

    Args:
        difference: The difference.
        changed: The paths of records that differ in more than timestamps.
        partitions: The partitions that other parts write to.
        ids: The id mapping.
    """
    path = difference.path
    found = _TIMED_RECORD.search(path)
    if found is None or _record_of(path) in changed:
        return False
    own = (
        ids.offsets.log(*each).appended.live_at(int(found[1]))
        for each in partitions
        if _is_in(path, *each)
    )
    # The type of timestamps is one of the log.
    return found[2] != TIMES[0] or any(offset is not None for offset in own)


def _record_of(path: str) -> str:
    return path.rpartition(".")[0]


def _is_of_partition(
    difference: Difference, partitions: Collection[tuple[object, ...]], api: str
) -> bool:
    """Return whether a difference is in the records or offsets of one of these partitions."""
    path = difference.path
    if api == "Produce" and not path.endswith(_PRODUCED_OFFSET):
        return False
    return any(_is_in(path, *each) or path.endswith(f"[{each[0]}]") for each in partitions)


def _is_in(path: str, topic: Any, partition: Any) -> bool:
    """Return whether a path leads into a partition."""
    return f"[{topic}]" in path and f"[{partition}]" in path


def _is_of_topic(difference: Difference, topics: Collection[object], api: str) -> bool:
    """Return whether a difference is what one of these topics is, or whether it exists."""
    if not any(f"[{topic}]" in difference.path for topic in topics):
        return False
    if difference.is_error:
        return {difference.captured, difference.replayed} - {0} <= _TOPIC_ERRORS
    return api not in PARTITION_APIS
