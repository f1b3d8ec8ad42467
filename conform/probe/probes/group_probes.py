"""Probes of group membership and committed offsets."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

from cluster.client.cluster import CoordinatorType
from conform.probe.probe_fixtures import Topic
from conform.probe.probe_registry import ProbeContext, probe
from conform.probe.probe_reporter import ProbeReporter
from conform.probe.probe_target import NotJudged, require_response
from conform.probe.raw_exchange import RawExchange
from dissector.protocol.error_codes import error_name

_METADATA = b"\0\1 of a member"
_ASSIGNMENT = b"\0\1 for a member"
_SESSION_MS = 30_000
_PAUSE_S = 0.1
_FIRST_WITH_MEMBERS = 3
"""The first version of LeaveGroup with an error for each member (KIP-345)."""

_COMMITTED_OFFSET, _COMMITTED_METADATA = 42, "swum this far"


def _join_fields(group: str, **more: Any) -> dict[str, Any]:
    """Return the fields of JoinGroup."""
    return {
        "group_id": group,
        "session_timeout_ms": _SESSION_MS,
        "rebalance_timeout_ms": _SESSION_MS,
        "protocol_type": "kafkashark",
        "protocols": [{"name": "one", "metadata": _METADATA}],
        **more,
    }


@probe(
    "P38",
    "Join without a member id not answered with MEMBER_ID_REQUIRED",
    source="KIP-394; GroupMetadataManager.classicGroupJoin",
    asks="MEMBER_ID_REQUIRED (79) with a member id from JoinGroup v4 on; in earlier versions the "
    "member joins at once.",
    example="JoinGroup v5 with an empty member id is answered with a generation",
    writes=True,
)
async def probe_member_id_first(context: ProbeContext, reporter: ProbeReporter) -> None:
    """Join without a member id."""
    # Concurrently: brokers delay the first rebalance of a new group, by default for 3 s.
    await asyncio.gather(
        *(
            _join_without_id(context, reporter, v)
            for v in context.target.versions("JoinGroup", until=3)
        )
    )
    for version in context.target.versions("JoinGroup", since=4):
        group = context.fixtures.group_id(f"join-{version}")
        node = await context.target.coordinator(CoordinatorType.GROUP, group)
        exchange = await context.target.request("JoinGroup", _join_fields(group), version, node)
        if reporter.check_error(exchange, "error_code", "MEMBER_ID_REQUIRED"):
            reporter.check(
                bool(exchange.field("member_id")),
                f"{exchange}: no member id",
                exchange,
                "member_id",
            )


async def _join_without_id(context: ProbeContext, reporter: ProbeReporter, version: int) -> None:
    """Join in a version without MEMBER_ID_REQUIRED, and leave."""
    group = context.fixtures.group_id(f"join-{version}")
    node = await context.target.coordinator(CoordinatorType.GROUP, group)
    connection = await context.target.open_connection(node)
    try:
        exchange = await connection.request("JoinGroup", version, _join_fields(group))
        if reporter.check_error(exchange, "error_code", "NONE"):
            member = exchange.field("member_id")
            reporter.check(bool(member), f"{exchange}: no member id", exchange, "member_id")
            leaving = {"group_id": group, "member_id": member, "members": [{"member_id": member}]}
            await connection.request(
                "LeaveGroup", context.target.newest_version("LeaveGroup"), leaving
            )
    finally:
        connection.close()


async def _join_group(
    context: ProbeContext, suffix: str
) -> tuple[dict[str, Any], int, RawExchange]:
    """Join a group as its only member; return member, coordinator, and exchange."""
    group = context.fixtures.group_id(suffix)
    node = await context.target.coordinator(CoordinatorType.GROUP, group)
    exchange = await context.target.request("JoinGroup", _join_fields(group), node=node)
    if error_name(exchange.field("error_code", -1)) == "MEMBER_ID_REQUIRED":
        fields = _join_fields(group, member_id=exchange.field("member_id"))
        exchange = await context.target.request("JoinGroup", fields, node=node)
    error = require_response(exchange).field("error_code", -1)
    if error:
        raise NotJudged(f"no group can be joined: {error_name(error)}")
    member = {
        "group_id": group,
        "member_id": exchange.field("member_id"),
        "generation_id": exchange.field("generation_id"),
        "generation_id_or_member_epoch": exchange.field("generation_id"),
    }
    return member, node, exchange


@probe(
    "P39",
    "Single member does not lead its group, or gets another assignment",
    source="GroupMetadataManager; JoinGroupResponse.json, SyncGroupResponse.json",
    asks="The leader gets the members with their metadata; SyncGroup returns to each member its "
    "own bytes; Heartbeat is answered with error 0; after LeaveGroup the member is unknown.",
    example="SyncGroup returns an empty assignment",
    writes=True,
)
async def probe_single_member(context: ProbeContext, reporter: ProbeReporter) -> None:
    """Join, sync, send heartbeats, leave."""
    member, node, joined = await _join_group(context, "alone")
    request = context.target.request
    leader, member_id = joined.field("leader"), member["member_id"]
    reporter.check(
        leader == member_id, f"{joined}: leader {leader!r}, not the only member", joined, "leader"
    )
    members = [(each.member_id, each.metadata) for each in joined.field("members")]
    found = f"{joined}: members {members}, not the only one with its metadata"
    reporter.check(members == [(member_id, _METADATA)], found, joined, "members")
    assignments = [{"member_id": member_id, "assignment": _ASSIGNMENT}]
    sync = {
        **member,
        "protocol_type": "kafkashark",
        "protocol_name": "one",
        "assignments": assignments,
    }
    synced = await request("SyncGroup", sync, node=node)
    if reporter.check_error(synced, "error_code", "NONE"):
        assignment = synced.field("assignment")
        found = f"{synced}: returns {assignment!r}, not what the leader assigned"
        reporter.check(assignment == _ASSIGNMENT, found, synced, "assignment")
    for version in context.target.versions("Heartbeat"):
        reporter.check_error(
            await request("Heartbeat", member, version, node), "error_code", "NONE"
        )
        newer = {**member, "generation_id": member["generation_id"] + 5}
        reporter.check_error(
            await request("Heartbeat", newer, version, node), "error_code", "ILLEGAL_GENERATION"
        )
    if context.target.versions("DeleteGroups"):
        deleted = await request("DeleteGroups", {"groups_names": [member["group_id"]]}, node=node)
        reporter.check_error(deleted, "results[0].error_code", "NON_EMPTY_GROUP")
        if deleted.field("results[0].error_code") == 0:
            raise NotJudged("the broker deleted the group though it had a member")
    other_fields = {"protocol_type": "kafkashark", "protocols": [{"name": "two", "metadata": b""}]}
    rejoined = await request(
        "JoinGroup", _join_fields(member["group_id"], **other_fields), node=node
    )
    reporter.check_error(
        rejoined, "error_code", "INCONSISTENT_GROUP_PROTOCOL", "MEMBER_ID_REQUIRED"
    )
    await _leave(context, reporter, member, node)
    reporter.check_error(
        await request("Heartbeat", member, node=node), "error_code", "UNKNOWN_MEMBER_ID"
    )


async def _leave(
    context: ProbeContext, reporter: ProbeReporter, member: dict[str, Any], node: int
) -> None:
    leaving = {**member, "members": [{"member_id": member["member_id"]}]}
    left = await context.target.request("LeaveGroup", leaving, node=node)
    if reporter.check_error(left, "error_code", "NONE") and left.version >= _FIRST_WITH_MEMBERS:
        reporter.check_error(left, "members[0].error_code", "NONE")


@probe(
    "P40",
    "Invalid session timeout, protocols or group id accepted",
    source="GroupMetadataManager.classicGroupJoin; group.min.session.timeout.ms",
    asks="INVALID_SESSION_TIMEOUT (26) for a timeout outside the broker's bounds, "
    "INCONSISTENT_GROUP_PROTOCOL (23) without protocols, INVALID_GROUP_ID (24) for an empty group "
    "id.",
    example="JoinGroup with a session timeout of 1 ms succeeds",
    writes=True,
)
async def probe_invalid_joins(context: ProbeContext, reporter: ProbeReporter) -> None:
    """Join with invalid fields."""
    group = context.fixtures.group_id("refused")
    node = await context.target.coordinator(CoordinatorType.GROUP, group)
    cases = (
        ("INVALID_SESSION_TIMEOUT", _join_fields(group, session_timeout_ms=1)),
        ("INCONSISTENT_GROUP_PROTOCOL", _join_fields(group, protocols=[])),
        ("INVALID_GROUP_ID", _join_fields("")),
    )
    for error, fields in cases:
        for version in context.target.versions("JoinGroup"):
            exchange = await context.target.request("JoinGroup", fields, version, node)
            reporter.check_error(exchange, "error_code", error)


@probe(
    "P46",
    "Committed offset or its metadata is not returned",
    source="OffsetMetadataManager; OffsetCommitRequest.json, OffsetFetchRequest.json",
    asks="OffsetFetch returns what OffsetCommit stored, in any combination of versions; null "
    "topics return all.",
    example="the metadata is returned empty",
    writes=True,
)
async def probe_commits(context: ProbeContext, reporter: ProbeReporter) -> None:
    """Commit and fetch an offset, at each version."""
    topic = await context.fixtures.topic("committed")
    group = context.fixtures.group_id("commits")
    node = await context.target.coordinator(CoordinatorType.GROUP, group)
    newest = context.target.newest_version("OffsetFetch", since=1)
    for version in context.target.versions("OffsetCommit", since=2):
        exchange = await _commit(context, topic, group, version, node)
        if reporter.check_error(exchange, "topics[0].partitions[0].error_code", "NONE"):
            await _check_fetched_offset(context, reporter, topic, group, newest, node)
    for version in context.target.versions("OffsetFetch", since=1):
        await _check_fetched_offset(context, reporter, topic, group, version, node)
        if version >= 2:
            await _check_fetched_offset(context, reporter, None, group, version, node)


async def _commit(
    context: ProbeContext, topic: Topic, group: str, version: int, node: int
) -> RawExchange:
    partition = {
        "partition_index": 0,
        "committed_offset": _COMMITTED_OFFSET,
        "committed_leader_epoch": -1,
        "committed_metadata": _COMMITTED_METADATA,
    }
    fields = {
        "group_id": group,
        "generation_id_or_member_epoch": -1,
        "retention_time_ms": -1,
        "topics": [{"name": topic.name, "topic_id": topic.topic_id, "partitions": [partition]}],
    }
    return await context.target.request("OffsetCommit", fields, version, node)


async def _check_fetched_offset(
    context: ProbeContext,
    reporter: ProbeReporter,
    topic: Topic | None,
    group: str,
    version: int,
    node: int,
) -> None:
    """Fetch the offset of a topic; without one, of all topics."""
    topics = (
        [{"name": topic.name, "topic_id": topic.topic_id, "partition_indexes": [0]}]
        if topic
        else None
    )
    group_fields = {"group_id": group, "member_id": None, "member_epoch": -1, "topics": topics}
    fields = {"group_id": group, "topics": topics, "groups": [group_fields]}
    exchange = await context.target.request("OffsetFetch", fields, version, node)
    path = ("groups[0]." if version >= 8 else "") + "topics[0].partitions[0]"
    if reporter.check_error(exchange, f"{path}.error_code", "NONE"):
        fetched = exchange.field(f"{path}.committed_offset"), exchange.field(f"{path}.metadata")
        suffix = "" if topic else " for all topics"
        found = (
            f"{exchange}{suffix}: returns {fetched}, not {(_COMMITTED_OFFSET, _COMMITTED_METADATA)}"
        )
        reporter.check(fetched == (_COMMITTED_OFFSET, _COMMITTED_METADATA), found, exchange, path)


@probe(
    "P41",
    "Consumer group heartbeats do not follow the member epochs",
    source="KIP-848; GroupMetadataManager.consumerGroupHeartbeat",
    asks="A member epoch above 0 and an assignment for epoch 0; FENCED_MEMBER_EPOCH (110) for a "
    "wrong epoch; epoch -1 leaves.",
    example="a heartbeat with a future epoch is answered with error 0",
    writes=True,
    may_kill=True,
)
async def probe_consumer_group_epochs(context: ProbeContext, reporter: ProbeReporter) -> None:
    """Join, get an assignment, get fenced, leave."""
    context.target.newest_version("ConsumerGroupHeartbeat")
    topic = await context.fixtures.topic("assigned")
    for version in context.target.versions("ConsumerGroupHeartbeat"):
        group = context.fixtures.group_id(f"epochs-{version}")
        node = await context.target.coordinator(CoordinatorType.GROUP, group)
        await _check_consumer_group_member(context, reporter, topic, group, version, node)


async def _check_consumer_group_member(
    context: ProbeContext,
    reporter: ProbeReporter,
    topic: Topic,
    group: str,
    version: int,
    node: int,
) -> None:
    async def heartbeat(**fields: Any) -> RawExchange:
        return await context.target.request("ConsumerGroupHeartbeat", fields, version, node)

    first = {
        "group_id": group,
        "member_id": str(uuid4()) if version else "",
        "member_epoch": 0,
        "instance_id": None,
        "rack_id": None,
        "rebalance_timeout_ms": _SESSION_MS,
        "subscribed_topic_names": [topic.name],
        "server_assignor": None,
        "topic_partitions": [],
    }
    joined = await heartbeat(**first)
    if error_name(joined.field("error_code", 0)) == "UNSUPPORTED_VERSION":
        reporter.count_unjudged("the broker's settings do not allow such groups")
        return
    if not reporter.check_error(joined, "error_code", "NONE"):
        return
    epoch, member = joined.field("member_epoch"), joined.field("member_id")
    reporter.check(epoch > 0, f"{joined}: member epoch {epoch}", joined, "member_epoch")
    unchanged = {**first, "rebalance_timeout_ms": -1, "subscribed_topic_names": None}
    unchanged |= {"topic_partitions": None, "member_id": member}
    loop = asyncio.get_running_loop()
    deadline = loop.time() + context.target.timeout_s
    response = joined
    # The coordinator may discover a new topic, and assign it, with a short delay.
    while not response.field("assignment.topic_partitions") and loop.time() < deadline:
        await asyncio.sleep(_PAUSE_S)
        response = await heartbeat(**{**unchanged, "member_epoch": epoch})
        if not reporter.check_error(response, "error_code", "NONE"):
            return
        epoch = response.field("member_epoch")
    assigned = [
        (each.topic_id, each.partitions)
        for each in response.field("assignment.topic_partitions") or ()
    ]
    found = f"{response}: assigns {assigned}, not partition 0 of the topic"
    reporter.check(assigned == [(topic.topic_id, [0])], found, response, "assignment")
    reporter.check_error(
        await heartbeat(**{**unchanged, "member_epoch": epoch}), "error_code", "NONE"
    )
    future = await heartbeat(**{**unchanged, "member_epoch": epoch + 100})
    reporter.check_error(future, "error_code", "FENCED_MEMBER_EPOCH")
    left = await heartbeat(**{**unchanged, "member_epoch": -1})
    if reporter.check_error(left, "error_code", "NONE"):
        epoch = left.field("member_epoch")
        reporter.check(epoch == -1, f"{left}, leaving: epoch {epoch}, not -1", left, "member_epoch")
    gone = await heartbeat(**{**unchanged, "member_epoch": epoch})
    reporter.check_error(gone, "error_code", "UNKNOWN_MEMBER_ID", "GROUP_ID_NOT_FOUND")
