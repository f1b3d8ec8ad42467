"""Probes of group membership and committed offsets."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

from conform.probe.probe_fixtures import Topic
from conform.probe.probe_registry import Probed, probe
from conform.probe.probe_reporter import LiveSay
from conform.probe.probe_target import NotJudged, answered
from conform.probe.raw_exchange import Said
from dissector.protocol.error_codes import error_name
from replay.client.cluster import Coordinated

_METADATA = b"\0\1 of a member"
_ASSIGNMENT = b"\0\1 for a member"
_SESSION_MS = 30_000
_PAUSE_S = 0.1
_FIRST_WITH_MEMBERS = 3
"""The first version of LeaveGroup with an error for each member (KIP-345)."""

_OFFSET, _NOTE = 42, "swum this far"


def _wish(group: str, **more: Any) -> dict[str, Any]:
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
async def id_first(probed: Probed, say: LiveSay) -> None:
    """Join without a member id."""
    # Concurrently: brokers delay the first rebalance of a new group, by default for 3 s.
    await asyncio.gather(
        *(_in_at_once(probed, say, v) for v in probed.target.versions("JoinGroup", until=3))
    )
    for version in probed.target.versions("JoinGroup", since=4):
        group = probed.own.group(f"join-{version}")
        node = await probed.target.coordinator(Coordinated.GROUP, group)
        said = await probed.target.ask("JoinGroup", _wish(group), version, node)
        if say.error(said, "error_code", "MEMBER_ID_REQUIRED"):
            say.holds(bool(said.at("member_id")), f"{said}: no member id", said, "member_id")


async def _in_at_once(probed: Probed, say: LiveSay, version: int) -> None:
    """Join in a version without MEMBER_ID_REQUIRED, and leave."""
    group = probed.own.group(f"join-{version}")
    node = await probed.target.coordinator(Coordinated.GROUP, group)
    line = await probed.target.line(node)
    try:
        said = await line.ask("JoinGroup", version, _wish(group))
        if say.error(said, "error_code", "NONE"):
            member = said.at("member_id")
            say.holds(bool(member), f"{said}: no member id", said, "member_id")
            leaving = {"group_id": group, "member_id": member, "members": [{"member_id": member}]}
            await line.ask("LeaveGroup", probed.target.newest("LeaveGroup"), leaving)
    finally:
        line.close()


async def _joined(probed: Probed, what: str) -> tuple[dict[str, Any], int, Said]:
    """Join a group of ours as its only member; return member, coordinator, and exchange."""
    group = probed.own.group(what)
    node = await probed.target.coordinator(Coordinated.GROUP, group)
    said = await probed.target.ask("JoinGroup", _wish(group), node=node)
    if error_name(said.at("error_code", -1)) == "MEMBER_ID_REQUIRED":
        wish = _wish(group, member_id=said.at("member_id"))
        said = await probed.target.ask("JoinGroup", wish, node=node)
    error = answered(said).at("error_code", -1)
    if error:
        raise NotJudged(f"no group can be joined: {error_name(error)}")
    who = {
        "group_id": group,
        "member_id": said.at("member_id"),
        "generation_id": said.at("generation_id"),
        "generation_id_or_member_epoch": said.at("generation_id"),
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
async def alone(probed: Probed, say: LiveSay) -> None:
    """Join, sync, send heartbeats, leave."""
    who, node, joined = await _joined(probed, "alone")
    ask = probed.target.ask
    leader, me = joined.at("leader"), who["member_id"]
    say.holds(leader == me, f"{joined}: leader {leader!r}, not the only member", joined, "leader")
    told = [(each.member_id, each.metadata) for each in joined.at("members")]
    what = f"{joined}: members {told}, not the only one with its metadata"
    say.holds(told == [(me, _METADATA)], what, joined, "members")
    given = [{"member_id": me, "assignment": _ASSIGNMENT}]
    sync = {**who, "protocol_type": "kafkashark", "protocol_name": "one", "assignments": given}
    synced = await ask("SyncGroup", sync, node=node)
    if say.error(synced, "error_code", "NONE"):
        got = synced.at("assignment")
        what = f"{synced}: brings {got!r}, not what the leader gave"
        say.holds(got == _ASSIGNMENT, what, synced, "assignment")
    for version in probed.target.versions("Heartbeat"):
        say.error(await ask("Heartbeat", who, version, node), "error_code", "NONE")
        old = {**who, "generation_id": who["generation_id"] + 5}
        say.error(await ask("Heartbeat", old, version, node), "error_code", "ILLEGAL_GENERATION")
    if probed.target.versions("DeleteGroups"):
        deleted = await ask("DeleteGroups", {"groups_names": [who["group_id"]]}, node=node)
        say.error(deleted, "results[0].error_code", "NON_EMPTY_GROUP")
        if deleted.at("results[0].error_code") == 0:
            raise NotJudged("the broker deleted the group though it had a member")
    other = {"protocol_type": "kafkashark", "protocols": [{"name": "two", "metadata": b""}]}
    refused = await ask("JoinGroup", _wish(who["group_id"], **other), node=node)
    say.error(refused, "error_code", "INCONSISTENT_GROUP_PROTOCOL", "MEMBER_ID_REQUIRED")
    await _leave(probed, say, who, node)
    say.error(await ask("Heartbeat", who, node=node), "error_code", "UNKNOWN_MEMBER_ID")


async def _leave(probed: Probed, say: LiveSay, who: dict[str, Any], node: int) -> None:
    leaving = {**who, "members": [{"member_id": who["member_id"]}]}
    left = await probed.target.ask("LeaveGroup", leaving, node=node)
    if say.error(left, "error_code", "NONE") and left.version >= _FIRST_WITH_MEMBERS:
        say.error(left, "members[0].error_code", "NONE")


@probe(
    "P40",
    "A session timeout out of the broker's bounds is refused, as is a member without protocols",
    source="GroupMetadataManager.classicGroupJoin; group.min.session.timeout.ms",
    asks="INVALID_SESSION_TIMEOUT (26), INCONSISTENT_GROUP_PROTOCOL (23); INVALID_GROUP_ID (24) "
    "where the group has no name.",
    example="JoinGroup with a session of 1 ms is taken",
    writes=True,
)
async def bad_wishes(probed: Probed, say: LiveSay) -> None:
    """Join with invalid fields."""
    group = probed.own.group("refused")
    node = await probed.target.coordinator(Coordinated.GROUP, group)
    cases = (
        ("INVALID_SESSION_TIMEOUT", _wish(group, session_timeout_ms=1)),
        ("INCONSISTENT_GROUP_PROTOCOL", _wish(group, protocols=[])),
        ("INVALID_GROUP_ID", _wish("")),
    )
    for error, wish in cases:
        for version in probed.target.versions("JoinGroup"):
            said = await probed.target.ask("JoinGroup", wish, version, node)
            say.error(said, "error_code", error)


@probe(
    "P46",
    "A committed offset comes back with its metadata",
    source="OffsetMetadataManager; OffsetCommitRequest.json, OffsetFetchRequest.json",
    asks="OffsetFetch brings what OffsetCommit took, at any versions; null topics bring all.",
    example="the metadata comes back empty",
    writes=True,
)
async def commits(probed: Probed, say: LiveSay) -> None:
    """Commit and fetch an offset, at each version."""
    topic = await probed.own.topic("committed")
    group = probed.own.group("commits")
    node = await probed.target.coordinator(Coordinated.GROUP, group)
    newest = probed.target.newest("OffsetFetch", since=1)
    for version in probed.target.versions("OffsetCommit", since=2):
        said = await _commit(probed, topic, group, version, node)
        if say.error(said, "topics[0].partitions[0].error_code", "NONE"):
            await _fetch_offset(probed, say, topic, group, newest, node)
    for version in probed.target.versions("OffsetFetch", since=1):
        await _fetch_offset(probed, say, topic, group, version, node)
        if version >= 2:
            await _fetch_offset(probed, say, None, group, version, node)


async def _commit(probed: Probed, topic: Topic, group: str, version: int, node: int) -> Said:
    partition = {
        "partition_index": 0,
        "committed_offset": _OFFSET,
        "committed_leader_epoch": -1,
        "committed_metadata": _NOTE,
    }
    fields = {
        "group_id": group,
        "generation_id_or_member_epoch": -1,
        "retention_time_ms": -1,
        "topics": [{"name": topic.name, "topic_id": topic.topic_id, "partitions": [partition]}],
    }
    return await probed.target.ask("OffsetCommit", fields, version, node)


async def _fetch_offset(
    probed: Probed, say: LiveSay, topic: Topic | None, group: str, version: int, node: int
) -> None:
    """Fetch the offset of a topic; without one, of all topics."""
    wanted = (
        [{"name": topic.name, "topic_id": topic.topic_id, "partition_indexes": [0]}]
        if topic
        else None
    )
    one = {"group_id": group, "member_id": None, "member_epoch": -1, "topics": wanted}
    fields = {"group_id": group, "topics": wanted, "groups": [one]}
    said = await probed.target.ask("OffsetFetch", fields, version, node)
    path = ("groups[0]." if version >= 8 else "") + "topics[0].partitions[0]"
    if say.error(said, f"{path}.error_code", "NONE"):
        got = said.at(f"{path}.committed_offset"), said.at(f"{path}.metadata")
        of = "" if topic else " for all topics"
        what = f"{said}{of}: brings {got}, not {(_OFFSET, _NOTE)}"
        say.holds(got == (_OFFSET, _NOTE), what, said, path)


@probe(
    "P41",
    "A group whose members the broker assigns is joined, kept and left by its epochs",
    source="KIP-848; GroupMetadataManager.consumerGroupHeartbeat",
    asks="A member epoch above 0 and an assignment for epoch 0; FENCED_MEMBER_EPOCH (110) for "
    "another one; epoch -1 leaves.",
    example="a heartbeat with an epoch of the future is answered with error 0",
    writes=True,
)
async def by_epochs(probed: Probed, say: LiveSay) -> None:
    """Join, get an assignment, get fenced, leave."""
    probed.target.newest("ConsumerGroupHeartbeat")
    topic = await probed.own.topic("assigned")
    for version in probed.target.versions("ConsumerGroupHeartbeat"):
        group = probed.own.group(f"epochs-{version}")
        node = await probed.target.coordinator(Coordinated.GROUP, group)
        await _member(probed, say, topic, group, version, node)


async def _member(
    probed: Probed, say: LiveSay, topic: Topic, group: str, version: int, node: int
) -> None:
    async def beat(**fields: Any) -> Said:
        return await probed.target.ask("ConsumerGroupHeartbeat", fields, version, node)

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
    if error_name(joined.at("error_code", 0)) == "UNSUPPORTED_VERSION":
        say.unjudged("the broker's settings forbid such groups")
        return
    if not say.error(joined, "error_code", "NONE"):
        return
    epoch, member = joined.at("member_epoch"), joined.at("member_id")
    say.holds(epoch > 0, f"{joined}: member epoch {epoch}", joined, "member_epoch")
    silent = {**first, "rebalance_timeout_ms": -1, "subscribed_topic_names": None}
    silent |= {"topic_partitions": None, "member_id": member}
    loop = asyncio.get_running_loop()
    deadline = loop.time() + probed.target.timeout_s
    told = joined
    # The coordinator may discover a new topic, and assign it, with a short delay.
    while not told.at("assignment.topic_partitions") and loop.time() < deadline:
        await asyncio.sleep(_PAUSE_S)
        told = await beat(**{**silent, "member_epoch": epoch})
        if not say.error(told, "error_code", "NONE"):
            return
        epoch = told.at("member_epoch")
    held = [
        (each.topic_id, each.partitions) for each in told.at("assignment.topic_partitions") or ()
    ]
    what = f"{told}: assigns {held}, not partition 0 of the topic"
    say.holds(held == [(topic.topic_id, [0])], what, told, "assignment")
    say.error(await beat(**{**silent, "member_epoch": epoch}), "error_code", "NONE")
    later = await beat(**{**silent, "member_epoch": epoch + 100})
    say.error(later, "error_code", "FENCED_MEMBER_EPOCH")
    left = await beat(**{**silent, "member_epoch": -1})
    if say.error(left, "error_code", "NONE"):
        epoch = left.at("member_epoch")
        say.holds(epoch == -1, f"{left}, leaving: epoch {epoch}, not -1", left, "member_epoch")
    gone = await beat(**{**silent, "member_epoch": epoch})
    say.error(gone, "error_code", "UNKNOWN_MEMBER_ID", "GROUP_ID_NOT_FOUND")
