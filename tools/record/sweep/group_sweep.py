"""The sweep's second part: classic groups, and groups of KIP-848, KIP-932 and KIP-1071."""

from __future__ import annotations

import uuid
from typing import Any
from uuid import UUID

from construct import Container

from dissector.protocol.embedded.membership.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from tools.record.sweep.client import SweepClient, patiently
from tools.record.sweep.data_sweep import create_topics

OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR, JOIN_GROUP, HEARTBEAT = 8, 9, 10, 11, 12
LEAVE_GROUP, SYNC_GROUP, DESCRIBE_GROUPS, LIST_GROUPS = 13, 14, 15, 16
DELETE_GROUPS, OFFSET_DELETE = 42, 47
CONSUMER_GROUP_HEARTBEAT, CONSUMER_GROUP_DESCRIBE = 68, 69
STREAMS_GROUP_HEARTBEAT, STREAMS_GROUP_DESCRIBE, STREAMS_TOPOLOGY_UPDATE = 88, 89, 93

CLASSIC = (
    FIND_COORDINATOR,
    JOIN_GROUP,
    SYNC_GROUP,
    HEARTBEAT,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    DESCRIBE_GROUPS,
    LIST_GROUPS,
    LEAVE_GROUP,
    OFFSET_DELETE,
    DELETE_GROUPS,
)
KEYS = (
    *CLASSIC,
    CONSUMER_GROUP_HEARTBEAT,
    CONSUMER_GROUP_DESCRIBE,
    STREAMS_GROUP_HEARTBEAT,
    STREAMS_GROUP_DESCRIBE,
    STREAMS_TOPOLOGY_UPDATE,
)

_TOPIC = "sweep.groups.read"
_VERSIONED = b"\x00\x01"
_LEAVING = -1
_SOURCE, _PROCESSOR, _SINK = 1, 2, 3


def groups(client: SweepClient) -> None:
    """Send all versions of group requests, in the order of a member's life."""
    topic_id = create_topics(client, _TOPIC)[_TOPIC]
    for number in client.rounds(*CLASSIC):
        _classic(client, number, topic_id)
    for version in client.versions(CONSUMER_GROUP_HEARTBEAT):
        _consumer(client, version, topic_id)
    for version in client.versions(STREAMS_GROUP_HEARTBEAT):
        streams(client, version, _TOPIC, f"sweep.group.streams.{version}")
    client.rest(KEYS)


def find_coordinator(client: SweepClient, number: int, name: str, key_type: int = 0) -> None:
    """Find a coordinator at the version of a round, once it is available."""
    client.request_next(
        FIND_COORDINATOR, number, key=name, key_type=key_type, coordinator_keys=[name]
    )


def _classic(client: SweepClient, number: int, topic_id: UUID) -> None:
    group = f"sweep.group.{number}"
    static = f"sweep-{number}" if number % 3 == 2 else None
    find_coordinator(client, number, group)
    joined = _join(client, number, group, static)
    who = {
        "group_id": group,
        "generation_id": joined.generation_id,
        "member_id": joined.member_id,
        "group_instance_id": static,
    }
    assignment = {"assigned_partitions": [{"topic": _TOPIC, "partitions": [0]}]}
    given = _VERSIONED + ConsumerProtocolAssignment.codec(1).build(assignment)
    client.request_next(
        SYNC_GROUP,
        number,
        **who,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[{"member_id": joined.member_id, "assignment": given}],
    )
    client.request_next(HEARTBEAT, number, **who)
    topic = {"name": _TOPIC, "topic_id": topic_id}
    _offsets(client, number, who, topic)
    client.request_next(
        DESCRIBE_GROUPS,
        number,
        groups=[group, "sweep.unknown"],
        include_authorized_operations=True,
    )
    client.request_next(LIST_GROUPS, number, states_filter=["Stable"], types_filter=["classic"])
    member = {"member_id": joined.member_id, "group_instance_id": static, "reason": "done"}
    leaving = {"group_id": group, "member_id": joined.member_id, "members": [member]}
    client.request_next(LEAVE_GROUP, number, **leaving)
    partitions = [{"partition_index": 0}]
    topics = [{"name": _TOPIC, "partitions": partitions}]
    if number == 0:
        client.every(OFFSET_DELETE, group_id=group, topics=topics)
    client.request_next(DELETE_GROUPS, number, groups_names=[group, "sweep.unknown"])


def _join(client: SweepClient, number: int, group: str, static: str | None) -> Container:
    """Join; repeat with the member id required by newer versions (KIP-394)."""
    subscription = _VERSIONED + ConsumerProtocolSubscription.codec(1).build(
        {"topics": [_TOPIC], "owned_partitions": []}
    )
    wishes = {
        "group_id": group,
        "session_timeout_ms": 30_000,
        "rebalance_timeout_ms": 30_000,
        "group_instance_id": static,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": subscription}],
        "reason": "the sweep",
    }
    joined = client.request_next(JOIN_GROUP, number, **wishes, member_id="")
    assert joined is not None, "no response to JoinGroup"
    if joined.generation_id >= 0:
        return joined
    again = client.request_next(JOIN_GROUP, number, **wishes, member_id=joined.member_id)
    assert again is not None, "no response to JoinGroup"
    return again


def _offsets(client: SweepClient, number: int, who: dict[str, Any], topic: dict[str, Any]) -> None:
    committed = {
        "partition_index": 0,
        "committed_offset": number,
        "committed_leader_epoch": 0,
        "committed_metadata": "swept",
    }
    client.request_next(
        OFFSET_COMMIT,
        number,
        group_id=who["group_id"],
        member_id=who["member_id"],
        group_instance_id=who["group_instance_id"],
        generation_id_or_member_epoch=who["generation_id"],
        topics=[{**topic, "partitions": [committed]}],
    )
    classic = [{"name": _TOPIC, "partition_indexes": [0, 1]}]
    newer = [{**topic, "partition_indexes": [0, 1]}]
    groups = [
        {"group_id": who["group_id"], "topics": newer},
        {"group_id": "sweep.unknown", "topics": None},
    ]
    fields = {"group_id": who["group_id"], "topics": classic, "require_stable": True}
    client.request_next(OFFSET_FETCH, number, **fields, groups=groups)


def _consumer(client: SweepClient, version: int, topic_id: UUID) -> None:
    group = f"sweep.consumer.{version}"
    find_coordinator(client, 0, group)
    first = {
        "group_id": group,
        "member_id": str(uuid.uuid4()) if version else "",
        "member_epoch": 0,
        "rebalance_timeout_ms": 30_000,
        "subscribed_topic_names": [_TOPIC],
        "topic_partitions": [],
        "server_assignor": "uniform",
    }
    joined = client.request(CONSUMER_GROUP_HEARTBEAT, version, **first)
    assert joined is not None, "no response to ConsumerGroupHeartbeat"
    who = {"group_id": group, "member_id": joined.member_id}
    held = [{"topic_id": topic_id, "partitions": [0]}]
    client.request(
        CONSUMER_GROUP_HEARTBEAT,
        version,
        **who,
        member_epoch=joined.member_epoch,
        topic_partitions=held,
    )
    regex = {"subscribed_topic_regex": "sweep[.]groups.*", "rebalance_timeout_ms": -1}
    client.request(
        CONSUMER_GROUP_HEARTBEAT, version, **who, member_epoch=joined.member_epoch, **regex
    )
    both = [group, "sweep.unknown"]
    client.request_next(
        CONSUMER_GROUP_DESCRIBE, version, group_ids=both, include_authorized_operations=True
    )
    client.request(CONSUMER_GROUP_HEARTBEAT, version, **who, member_epoch=_LEAVING)


def streams(client: SweepClient, version: int, topic: str, group: str) -> None:
    """
    Start an application of one subtopology with a changelog, wait for its task, describe it.

    Args:
        client: Client of a listener that offers streams groups.
        version: Version of the heartbeats.
        topic: Topics of the application.
        group: Unused group id; a used one would have another topology.
    """
    member = str(uuid.uuid4())
    find_coordinator(client, 0, group)
    store = {
        "name": f"{group}-store-changelog",
        "topic_configs": [{"key": "cleanup.policy", "value": "compact"}],
    }
    subtopology = {
        "subtopology_id": "0",
        "source_topics": [topic],
        "state_changelog_topics": [store],
    }
    never = dict.fromkeys(("task_offsets", "task_end_offsets", "instance_id", "rack_id"))
    none: dict[str, Any] = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}
    first = {
        "topology": {"epoch": 0, "subtopologies": [subtopology]},
        "rebalance_timeout_ms": 30_000,
        "process_id": str(uuid.uuid4()),
        "user_endpoint": {"host": "127.0.0.1", "port": 9},
        "client_tags": [{"key": "zone", "value": "a"}],
        **never,
        **none,
    }
    silent = dict.fromkeys(("topology", "process_id", "user_endpoint", "client_tags")) | never
    who = {"group_id": group, "member_id": member}
    epoch = 0

    def tasks() -> list[Container] | None:
        nonlocal epoch
        fields = first if epoch == 0 else {**silent, **none, "rebalance_timeout_ms": -1}
        body = client.request(STREAMS_GROUP_HEARTBEAT, version, **who, member_epoch=epoch, **fields)
        assert body is not None, "no response to StreamsGroupHeartbeat"
        epoch = body.member_epoch or epoch
        return body.active_tasks or None

    held = patiently("a task of the streams group", tasks)
    doing = [
        {"subtopology_id": each.subtopology_id, "partitions": each.partitions} for each in held
    ]
    left: dict[str, Any] = {
        **silent,
        "rebalance_timeout_ms": -1,
        "standby_tasks": [],
        "warmup_tasks": [],
    }
    heartbeat = {**who, **left, "active_tasks": doing}
    client.request(STREAMS_GROUP_HEARTBEAT, version, **heartbeat, member_epoch=epoch)
    _describe_topology(client, who, topic)
    client.request_next(
        STREAMS_GROUP_DESCRIBE,
        version,
        group_ids=[group, "sweep.unknown"],
        include_authorized_operations=True,
        include_topology_description=True,
    )
    client.request(STREAMS_GROUP_HEARTBEAT, version, **heartbeat, member_epoch=_LEAVING)


def _describe_topology(client: SweepClient, who: dict[str, str], topic: str) -> None:
    """Send the topology's description, as members do at the coordinator's request (KIP-1331)."""

    def node(name: str, kind: int, *successors: str, **more: Any) -> dict[str, Any]:
        fields = {"source_topics": [], "sink_topic": None, "stores": []}
        return {**fields, **more, "name": name, "node_type": kind, "successors": list(successors)}

    nodes = [
        node("source", _SOURCE, "count", source_topics=[topic]),
        node("count", _PROCESSOR, "sink", stores=["store"]),
        node("sink", _SINK, sink_topic=f"{topic}.counts"),
    ]
    store = {
        "source": node("global-source", _SOURCE, "global", source_topics=[f"{topic}.global"]),
        "processor": node("global", _PROCESSOR, stores=["global-store"]),
    }
    subtopology = {"subtopology_id": "0", "nodes": nodes}
    description = {"subtopologies": [subtopology], "global_stores": [store]}
    client.newest(
        STREAMS_TOPOLOGY_UPDATE, **who, topology_epoch=0, topology_description=description
    )
