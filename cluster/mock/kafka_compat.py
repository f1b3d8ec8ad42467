"""
A compatibility shim for librdkafka's mock cluster: adapts requests and responses to Kafka's.

Source: Kafka, GroupCoordinatorService.java, Topic.java; KIP-394 (members without an id), KIP-848.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

from construct import Container

from dissector.protocol.apis import KEYS
from dissector.protocol.error_codes import error_code
from dissector.protocol.messages import Message

LEGAL_TOPIC = re.compile(r"(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}")
"""Source: Topic.java."""

_MEMBER_ID_REQUIRED = error_code("MEMBER_ID_REQUIRED")
_UNKNOWN_MEMBER_ID = error_code("UNKNOWN_MEMBER_ID")
_REBALANCE_IN_PROGRESS = error_code("REBALANCE_IN_PROGRESS")
_INVALID_REQUEST = error_code("INVALID_REQUEST")
_INVALID_TOPIC = error_code("INVALID_TOPIC_EXCEPTION")

_ALL_OF_TOPIC = sum(1 << operation for operation in (3, 4, 5, 6, 7, 8, 10, 11))
"""Read, write, create, delete, alter, describe, and both of configurations; KIP-430."""

_FIRST_THAT_WANTS_IDS = 4
"""First version of JoinGroup that refuses a member without an id and returns one (KIP-394)."""

_GroupPartition = tuple[str, str, int]
"""Group, topic, partition."""

SENT_AS = {
    (KEYS["Produce"], 5): 6,
    (KEYS["JoinGroup"], 6): 5,
    (KEYS["SyncGroup"], 4): 3,
    (KEYS["LeaveGroup"], 3): 2,
    (KEYS["LeaveGroup"], 4): 2,
}
"""API and version that the mock offers but doesn't encode or decode correctly -> version to use."""


class KafkaCompat:
    """
    The shim's state for one mock cluster.

    Each request is passed to `respond_instead`; if that returns None, request and response are
    passed to `adapt_request` and `adapt_response`.
    """

    def __init__(self) -> None:
        self._committed: dict[_GroupPartition, tuple[int, int, str]] = {}
        self._assigned: dict[str, tuple[int, dict[str, bytes]]] = {}
        self._joining: defaultdict[str, set[str]] = defaultdict(set)

    def respond_instead(self, request: Message) -> Container | None:
        """Return the response to a request that the mock must not get, or None for others."""
        body = request.body
        if body is not None and request.api == "LeaveGroup" and not _is_one_by_id(body):
            return _unknown_members(body)
        if body is None or body.get("member_id", "m"):
            return None
        if request.api == "ConsumerGroupHeartbeat":
            return _refuse_without_id()
        is_static = body.get("group_instance_id") is not None
        wants_id = (request.api_version or 0) >= _FIRST_THAT_WANTS_IDS and not is_static
        return (
            _member_id_required(request.client_id)
            if request.api == "JoinGroup" and wants_id
            else None
        )

    def adapt_request(self, request: Message) -> Container:
        """Record a request; return its body, or another one in its place for the mock."""
        body = request.body
        assert body is not None
        if request.api == "JoinGroup":
            self._joining[body.group_id].add(body.member_id)
        if request.api == "SyncGroup" and body.assignments:
            parts = {each.member_id: each.assignment for each in body.assignments}
            self._assigned[body.group_id] = body.generation_id, parts
        if request.api == "ConsumerGroupHeartbeat":
            return _with_both_or_none(body)
        if request.api == "Produce":
            return _with_records(body)
        return _without_instance(body) if request.api == "LeaveGroup" else body

    def adapt_response(self, request: Message, response: Container) -> Container | None:
        """Change a response to Kafka's; None if Kafka would send none."""
        assert request.body is not None
        adapter = _ADAPTERS.get(request.api or "")
        return response if adapter is None else adapter(self, request.body, response)

    def adapt_produce(self, request: Container, response: Container) -> Container | None:
        """Suppress the response where acks = 0; refuse partitions without records."""
        if not request.acks:
            return None
        answered = {_topic_of(each): each.partition_responses for each in response.responses}
        for topic in request.topic_data:
            for each in topic.partition_data:
                if not each.records and _topic_of(topic) in answered:
                    refused = Container(_REFUSED_PARTITION, index=each.index)
                    answered[_topic_of(topic)].append(refused)
        return response

    def adapt_metadata(self, request: Container, response: Container) -> Container | None:
        """Refuse illegal topic names, and list all operations as authorized."""
        for topic in response.topics:
            if not topic.error_code and request.get("include_topic_authorized_operations"):
                topic.topic_authorized_operations = _ALL_OF_TOPIC
            if topic.name is not None and not LEGAL_TOPIC.fullmatch(topic.name):
                topic.error_code, topic.partitions = _INVALID_TOPIC, []
        return response

    def adapt_join(self, request: Container, response: Container) -> Container:
        """Record that a member's JoinGroup request has its response."""
        self._joining[request.group_id].discard(request.member_id)
        return response

    def adapt_sync(self, request: Container, response: Container) -> Container:
        """
        Return the assignment also to a member of a stable group; an empty one for none.

        Source: ClassicGroup and GroupMetadataManager, classicGroupSync.
        """
        generation, parts = self._assigned.get(request.group_id, (-1, {}))
        if response.error_code == _INVALID_REQUEST and generation == request.generation_id:
            response.error_code = 0
            response.assignment = parts.get(request.member_id)
        response.assignment = response.assignment or b""
        return response

    def adapt_leave(self, request: Container, response: Container) -> Container:
        """List the members that left, in versions with such a list."""
        if "members" in response:
            response.members = _left(request, 0)
        return response

    def adapt_commit(self, request: Container, response: Container) -> Container:
        """
        Store committed offsets, which the mock forgets in part.

        Kafka accepts commits while other members are joining; the mock does not. Source:
        ClassicGroup.validateOffsetCommit.
        """
        errors = {}
        for place, partition in _partitions(request, response):
            is_rebalance = partition.error_code == _REBALANCE_IN_PROGRESS
            if is_rebalance and self._joining.get(request.group_id):
                partition.error_code = 0
            errors[place] = partition.error_code
        for place, partition in _partitions(request, request):
            if not errors.get(place, 0):
                epoch = partition.get("committed_leader_epoch", -1)
                metadata = partition.committed_metadata or ""
                self._committed[place] = partition.committed_offset, epoch, metadata
        return response

    def adapt_offset_fetch(self, request: Container, response: Container) -> Container:
        """Fill in the committed offsets; of all partitions if the request has no topics."""
        if request.topics is None:
            places = [place for place in self._committed if place[0] == request.group_id]
            parts = [Container(partition_index=each, error_code=0) for _, _, each in places]
            response.topics = [
                Container(name=topic, partitions=[part])
                for (_, topic, _), part in zip(places, parts, strict=True)
            ]
        for place, partition in _partitions(request, response):
            offset, epoch, metadata = self._committed.get(place, (-1, -1, ""))
            partition.committed_offset, partition.metadata = offset, metadata
            partition.committed_leader_epoch = epoch
        return response


_REFUSED_PARTITION: dict[str, Any] = {
    "error_code": error_code("INVALID_RECORD"),
    "base_offset": -1,
    "log_append_time_ms": -1,
    "log_start_offset": -1,
    "record_errors": [],
    "error_message": None,
}
"""Source: Kafka, ProduceRequest.validateRecords."""


def _topic_of(topic: Container) -> Any:
    """Return the name or id of a topic, as its version has it."""
    return topic.get("name") or topic.get("topic_id")


def _with_records(body: Container) -> Container:
    """Return a Produce request without empty partitions, which would crash the process."""
    if all(each.records for topic in body.topic_data for each in topic.partition_data):
        return body
    topics = [
        Container(topic, partition_data=[each for each in topic.partition_data if each.records])
        for topic in body.topic_data
    ]
    return Container({**body, "topic_data": topics})


def _member_id_required(client_id: str | None) -> Container:
    """Return a JoinGroup response that refuses a member and gives it an id to join with."""
    return Container(
        throttle_time_ms=0,
        error_code=_MEMBER_ID_REQUIRED,
        generation_id=-1,
        protocol_name="",
        leader="",
        member_id=f"{client_id or ''}-{uuid4()}",
        members=[],
    )


def _refuse_without_id() -> Container:
    """Refuse a member without a self-chosen id, which would crash the process (KIP-1082)."""
    return Container(
        throttle_time_ms=0,
        error_code=_INVALID_REQUEST,
        error_message=None,
        member_id=None,
        member_epoch=0,
        heartbeat_interval_ms=0,
        assignment=None,
    )


def _with_both_or_none(body: Container) -> Container:
    """
    Return a heartbeat with topics and pattern, or neither: only one would crash the process.

    Returns:
        The body itself if it is so already.
    """
    names, pattern = body.subscribed_topic_names, body.get("subscribed_topic_regex")
    both = (names or [], pattern or "") if names or pattern else (None, None)
    if both == (names, pattern):
        return body
    fields = ("subscribed_topic_names", "subscribed_topic_regex")
    return Container({**body, **dict(zip(fields, both, strict=True))})


def _is_one_by_id(body: Container) -> bool:
    """Return whether the mock can remove the members of a LeaveGroup request: one, by its id."""
    members = body.get("members")
    return members is None or (len(members) == 1 and bool(members[0].member_id))


def _unknown_members(body: Container) -> Container:
    """Refuse to remove members: static ones without ids, as administrators do, or several."""
    return Container(throttle_time_ms=0, error_code=0, members=_left(body, _UNKNOWN_MEMBER_ID))


def _left(body: Container, error: int | None) -> list[Container]:
    """Return the members of a LeaveGroup request as a response lists them."""
    fields = ("member_id", "group_instance_id")
    return [
        Container(error_code=error, **{name: each[name] for name in fields})
        for each in body.members
    ]


def _without_instance(body: Container) -> Container:
    """Return a LeaveGroup request as the version for the mock has it: without instance ids."""
    members = body.get("members")
    if not members or members[0].group_instance_id is None:
        return body
    return Container({**body, "members": [Container({**members[0], "group_instance_id": None})]})


def _partitions(request: Container, body: Container) -> Iterator[tuple[_GroupPartition, Container]]:
    """Yield the partitions of a body, each with its group, topic and number."""
    for topic in body.topics or ():
        for partition in topic.partitions:
            yield (request.group_id, topic.name, partition.partition_index), partition


_ADAPTERS: dict[str, Callable[[KafkaCompat, Container, Container], Container | None]] = {
    "Produce": KafkaCompat.adapt_produce,
    "Metadata": KafkaCompat.adapt_metadata,
    "JoinGroup": KafkaCompat.adapt_join,
    "SyncGroup": KafkaCompat.adapt_sync,
    "LeaveGroup": KafkaCompat.adapt_leave,
    "OffsetCommit": KafkaCompat.adapt_commit,
    "TxnOffsetCommit": KafkaCompat.adapt_commit,
    "OffsetFetch": KafkaCompat.adapt_offset_fetch,
}

ADAPTED_APIS = frozenset(KEYS[name] for name in (*_ADAPTERS, "ConsumerGroupHeartbeat"))
"""The APIs that the shim decodes; all others pass through unchanged."""
