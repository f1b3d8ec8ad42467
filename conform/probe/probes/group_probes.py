"""Probes of group membership and committed offsets."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

from conform.probe.probe_fixtures import Topic
from conform.probe.probe_registry import ProbeContext, probe
from conform.probe.probe_reporter import ProbeReporter
from conform.probe.probe_target import NotJudged, require_response
from conform.probe.raw_exchange import RawExchange
from dissector.protocol.error_codes import error_name
from replay.client.cluster import CoordinatorType

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
    "A member without an id is given one first, and joins with it",
    source="KIP-394; GroupMetadataManager.classicGroupJoin",
    asks="MEMBER_ID_REQUIRED (79) with a member id from JoinGroup v4 on; before, it is in at once.",
    example="JoinGroup v5 with an empty member id is answered with a generation",
    writes=True,
)
async def member_id_first(probed: ProbeContext, say: ProbeReporter) -> None:
    """Join without a member id."""
    # Concurrently: brokers delay the first rebalance of a new group, by default for 3 s.
    await asyncio.gather(
        *(_join_without_id(probed, say, v) for v in probed.target.versions("JoinGroup", until=3))
    )
    for version in probed.target.versions("JoinGroup", since=4):
        group = probed.fixtures.group_id(f"join-{version}")
        node = await probed.target.coordinator(CoordinatorType.GROUP, group)
        said = await probed.target.request("JoinGroup", _join_fields(group), version, node)
        if say.check_error(said, "error_code", "MEMBER_ID_REQUIRED"):
            say.check(bool(said.field("member_id")), f"{said}: no member id", said, "member_id")


async def _join_without_id(probed: ProbeContext, say: ProbeReporter, version: int) -> None:
    """Join in a version without MEMBER_ID_REQUIRED, and leave."""
    group = probed.fixtures.group_id(f"join-{version}")
    node = await probed.target.coordinator(CoordinatorType.GROUP, group)
    line = await probed.target.open_connection(node)
    try:
        said = await line.request("JoinGroup", version, _join_fields(group))
        if say.check_error(said, "error_code", "NONE"):
            member = said.field("member_id")
            say.check(bool(member), f"{said}: no member id", said, "member_id")
            leaving = {"group_id": group, "member_id": member, "members": [{"member_id": member}]}
            await line.request("LeaveGroup", probed.target.newest_version("LeaveGroup"), leaving)
    finally:
        line.close()


async def _join_group(probed: ProbeContext, what: str) -> tuple[dict[str, Any], int, RawExchange]:
    """Join a group of ours as its only member; return member, coordinator, and exchange."""
    group = probed.fixtures.group_id(what)
    node = await probed.target.coordinator(CoordinatorType.GROUP, group)
    said = await probed.target.request("JoinGroup", _join_fields(group), node=node)
    if error_name(said.field("error_code", -1)) == "MEMBER_ID_REQUIRED":
        wish = _join_fields(group, member_id=said.field("member_id"))
        said = await probed.target.request("JoinGroup", wish, node=node)
    error = require_response(said).field("error_code", -1)
    if error:
        raise NotJudged(f"no group can be joined: {error_name(error)}")
    who = {
        "group_id": group,
        "member_id": said.field("member_id"),
        "generation_id": said.field("generation_id"),
        "generation_id_or_member_epoch": said.field("generation_id"),
    }
    return who, node, said


@probe(
    "P39",
    "The only member of a group leads it, and gets what it assigned to itself",
    source="GroupMetadataManager; JoinGroupResponse.json, SyncGroupResponse.json",
    asks="The leader is told of its members with their metadata; SyncGroup brings each member its "
    "own bytes; Heartbeat is answered with error 0; after LeaveGroup the member is unknown.",
    example="SyncGroup brings an empty assignment",
    writes=True,
)
async def single_member(probed: ProbeContext, say: ProbeReporter) -> None:
    """Join, sync, send heartbeats, leave."""
    who, node, joined = await _join_group(probed, "alone")
    ask = probed.target.request
    leader, me = joined.field("leader"), who["member_id"]
    say.check(leader == me, f"{joined}: leader {leader!r}, not the only member", joined, "leader")
    told = [(each.member_id, each.metadata) for each in joined.field("members")]
    what = f"{joined}: members {told}, not the only one with its metadata"
    say.check(told == [(me, _METADATA)], what, joined, "members")
    given = [{"member_id": me, "assignment": _ASSIGNMENT}]
    sync = {**who, "protocol_type": "kafkashark", "protocol_name": "one", "assignments": given}
    synced = await ask("SyncGroup", sync, node=node)
    if say.check_error(synced, "error_code", "NONE"):
        got = synced.field("assignment")
        what = f"{synced}: brings {got!r}, not what the leader gave"
        say.check(got == _ASSIGNMENT, what, synced, "assignment")
    for version in probed.target.versions("Heartbeat"):
        say.check_error(await ask("Heartbeat", who, version, node), "error_code", "NONE")
        old = {**who, "generation_id": who["generation_id"] + 5}
        say.check_error(
            await ask("Heartbeat", old, version, node), "error_code", "ILLEGAL_GENERATION"
        )
    if probed.target.versions("DeleteGroups"):
        deleted = await ask("DeleteGroups", {"groups_names": [who["group_id"]]}, node=node)
        say.check_error(deleted, "results[0].error_code", "NON_EMPTY_GROUP")
        if deleted.field("results[0].error_code") == 0:
            raise NotJudged("the broker deleted the group though it had a member")
    other = {"protocol_type": "kafkashark", "protocols": [{"name": "two", "metadata": b""}]}
    refused = await ask("JoinGroup", _join_fields(who["group_id"], **other), node=node)
    say.check_error(refused, "error_code", "INCONSISTENT_GROUP_PROTOCOL", "MEMBER_ID_REQUIRED")
    await _leave(probed, say, who, node)
    say.check_error(await ask("Heartbeat", who, node=node), "error_code", "UNKNOWN_MEMBER_ID")


async def _leave(probed: ProbeContext, say: ProbeReporter, who: dict[str, Any], node: int) -> None:
    leaving = {**who, "members": [{"member_id": who["member_id"]}]}
    left = await probed.target.request("LeaveGroup", leaving, node=node)
    if say.check_error(left, "error_code", "NONE") and left.version >= _FIRST_WITH_MEMBERS:
        say.check_error(left, "members[0].error_code", "NONE")


@probe(
    "P40",
    "A session timeout out of the broker's bounds is refused, as is a member without protocols",
    source="GroupMetadataManager.classicGroupJoin; group.min.session.timeout.ms",
    asks="INVALID_SESSION_TIMEOUT (26), INCONSISTENT_GROUP_PROTOCOL (23); INVALID_GROUP_ID (24) "
    "where the group has no name.",
    example="JoinGroup with a session of 1 ms is taken",
    writes=True,
)
async def invalid_joins(probed: ProbeContext, say: ProbeReporter) -> None:
    """Join with invalid fields."""
    group = probed.fixtures.group_id("refused")
    node = await probed.target.coordinator(CoordinatorType.GROUP, group)
    cases = (
        ("INVALID_SESSION_TIMEOUT", _join_fields(group, session_timeout_ms=1)),
        ("INCONSISTENT_GROUP_PROTOCOL", _join_fields(group, protocols=[])),
        ("INVALID_GROUP_ID", _join_fields("")),
    )
    for error, wish in cases:
        for version in probed.target.versions("JoinGroup"):
            said = await probed.target.request("JoinGroup", wish, version, node)
            say.check_error(said, "error_code", error)


@probe(
    "P46",
    "A committed offset comes back with its metadata",
    source="OffsetMetadataManager; OffsetCommitRequest.json, OffsetFetchRequest.json",
    asks="OffsetFetch brings what OffsetCommit took, at any versions; null topics bring all.",
    example="the metadata comes back empty",
    writes=True,
)
async def commits(probed: ProbeContext, say: ProbeReporter) -> None:
    """Commit and fetch an offset, at each version."""
    topic = await probed.fixtures.topic("committed")
    group = probed.fixtures.group_id("commits")
    node = await probed.target.coordinator(CoordinatorType.GROUP, group)
    newest = probed.target.newest_version("OffsetFetch", since=1)
    for version in probed.target.versions("OffsetCommit", since=2):
        said = await _commit(probed, topic, group, version, node)
        if say.check_error(said, "topics[0].partitions[0].error_code", "NONE"):
            await _check_fetched_offset(probed, say, topic, group, newest, node)
    for version in probed.target.versions("OffsetFetch", since=1):
        await _check_fetched_offset(probed, say, topic, group, version, node)
        if version >= 2:
            await _check_fetched_offset(probed, say, None, group, version, node)


async def _commit(
    probed: ProbeContext, topic: Topic, group: str, version: int, node: int
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
    return await probed.target.request("OffsetCommit", fields, version, node)


async def _check_fetched_offset(
    probed: ProbeContext,
    say: ProbeReporter,
    topic: Topic | None,
    group: str,
    version: int,
    node: int,
) -> None:
    """Fetch the offset of a topic; without one, of all topics."""
    wanted = (
        [{"name": topic.name, "topic_id": topic.topic_id, "partition_indexes": [0]}]
        if topic
        else None
    )
    one = {"group_id": group, "member_id": None, "member_epoch": -1, "topics": wanted}
    fields = {"group_id": group, "topics": wanted, "groups": [one]}
    said = await probed.target.request("OffsetFetch", fields, version, node)
    path = ("groups[0]." if version >= 8 else "") + "topics[0].partitions[0]"
    if say.check_error(said, f"{path}.error_code", "NONE"):
        got = said.field(f"{path}.committed_offset"), said.field(f"{path}.metadata")
        of = "" if topic else " for all topics"
        what = f"{said}{of}: brings {got}, not {(_COMMITTED_OFFSET, _COMMITTED_METADATA)}"
        say.check(got == (_COMMITTED_OFFSET, _COMMITTED_METADATA), what, said, path)


@probe(
    "P41",
    "A group whose members the broker assigns is joined, kept and left by its epochs",
    source="KIP-848; GroupMetadataManager.consumerGroupHeartbeat",
    asks="A member epoch above 0 and an assignment for epoch 0; FENCED_MEMBER_EPOCH (110) for "
    "another one; epoch -1 leaves.",
    example="a heartbeat with an epoch of the future is answered with error 0",
    writes=True,
)
async def consumer_group_epochs(probed: ProbeContext, say: ProbeReporter) -> None:
    """Join, get an assignment, get fenced, leave."""
    probed.target.newest_version("ConsumerGroupHeartbeat")
    topic = await probed.fixtures.topic("assigned")
    for version in probed.target.versions("ConsumerGroupHeartbeat"):
        group = probed.fixtures.group_id(f"epochs-{version}")
        node = await probed.target.coordinator(CoordinatorType.GROUP, group)
        await _check_consumer_group_member(probed, say, topic, group, version, node)


async def _check_consumer_group_member(
    probed: ProbeContext, say: ProbeReporter, topic: Topic, group: str, version: int, node: int
) -> None:
    async def beat(**fields: Any) -> RawExchange:
        return await probed.target.request("ConsumerGroupHeartbeat", fields, version, node)

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
    joined = await beat(**first)
    if error_name(joined.field("error_code", 0)) == "UNSUPPORTED_VERSION":
        say.unjudged("the broker's settings forbid such groups")
        return
    if not say.check_error(joined, "error_code", "NONE"):
        return
    epoch, member = joined.field("member_epoch"), joined.field("member_id")
    say.check(epoch > 0, f"{joined}: member epoch {epoch}", joined, "member_epoch")
    silent = {**first, "rebalance_timeout_ms": -1, "subscribed_topic_names": None}
    silent |= {"topic_partitions": None, "member_id": member}
    loop = asyncio.get_running_loop()
    deadline = loop.time() + probed.target.timeout_s
    told = joined
    # The coordinator may discover a new topic, and assign it, with a short delay.
    while not told.field("assignment.topic_partitions") and loop.time() < deadline:
        await asyncio.sleep(_PAUSE_S)
        told = await beat(**{**silent, "member_epoch": epoch})
        if not say.check_error(told, "error_code", "NONE"):
            return
        epoch = told.field("member_epoch")
    held = [
        (each.topic_id, each.partitions) for each in told.field("assignment.topic_partitions") or ()
    ]
    what = f"{told}: assigns {held}, not partition 0 of the topic"
    say.check(held == [(topic.topic_id, [0])], what, told, "assignment")
    say.check_error(await beat(**{**silent, "member_epoch": epoch}), "error_code", "NONE")
    later = await beat(**{**silent, "member_epoch": epoch + 100})
    say.check_error(later, "error_code", "FENCED_MEMBER_EPOCH")
    left = await beat(**{**silent, "member_epoch": -1})
    if say.check_error(left, "error_code", "NONE"):
        epoch = left.field("member_epoch")
        say.check(epoch == -1, f"{left}, leaving: epoch {epoch}, not -1", left, "member_epoch")
    gone = await beat(**{**silent, "member_epoch": epoch})
    say.check_error(gone, "error_code", "UNKNOWN_MEMBER_ID", "GROUP_ID_NOT_FOUND")
