"""
Uncaptured members: group members without a captured join (capture midway, or with gaps).

They join on the target before the first request of their group is sent. All earlier members of a
classic group join together, with the group's captured subscription, or else with the topics that it
commits to; members of groups with broker-assigned partitions join with epoch 0. Members of a
Streams group can't join, because their topology is unknown.

Source: KIP-62, KIP-394 (classic groups); KIP-848, KIP-932, KIP-1071.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from construct import Container

from cluster.client.broker_connection import BrokerConnection
from cluster.client.cluster import Cluster, CoordinatorType
from cluster.client.router import MISROUTED
from cluster.conversion.change import Change
from cluster.fields.refusal import RewriteError
from dissector.engine.exchanges.captured_exchange import CapturedExchange
from dissector.errors import ReplayError
from dissector.protocol.apis import KEYS, api
from dissector.protocol.error_codes import ERRORS, error_code, error_name
from dissector.protocol.field_roles import Role
from dissector.protocol.messages import Message
from replay.mapping.id_map import IdMap
from replay.mapping.request_rewriter import rewrite
from replay.order.group_order import REBALANCES
from replay.plan.plan import Plan
from replay.sessions.group_sessions import GroupSessions
from replay.sessions.heartbeats import Heartbeats
from replay.sessions.membership import (
    BY_EPOCH,
    MEMBER_APIS,
    consumer_subscription,
    generation_in,
    members_in,
    was_not_member,
)
from replay.sessions.retry_policy import FIRST_PAUSE_S

JOINED = "joined before"
"""The rule in the report for joins that were not captured."""

CAN_NOT_JOIN = "its member joined before the capture or in a gap"

_STREAMS_APIS = frozenset({"StreamsGroupHeartbeat", "StreamsGroupTopologyDescriptionUpdate"})
_JOIN_APIS = frozenset({"JoinGroup"}) | _STREAMS_APIS

_ID_REQUIRED = error_code("MEMBER_ID_REQUIRED")
_SESSION_MS, _REBALANCE_MS = 45_000, 60_000
"""Defaults of Kafka's consumer, which the capture does not show."""

_JOIN, _SYNC = KEYS["JoinGroup"], KEYS["SyncGroup"]


@dataclass(slots=True)
class _UncapturedMember:
    """
    A member of a classic group that joins on the target.

    Attributes:
        group: The captured group id.
        member_id: The captured member id.
        generation: The first captured generation with the member.
        body: The body of its JoinGroup request.
        captured: The captured request that proves the membership.
        connection: Its connection while it joins.
        response: The last response to a JoinGroup; None while one is in flight.
    """

    group: str
    member_id: str
    generation: int
    body: Container
    captured: CapturedExchange
    connection: BrokerConnection | None = None
    response: Container | None = None


class UncapturedMembers:
    """
    Joins the uncaptured members of a pass.

    Args:
        plan: The plan.
        cluster: The target.
        ids: The id mapping.
        groups: The group sessions that receive joined members.
        heartbeats: Sends heartbeats for them.
    """

    def __init__(
        self,
        plan: Plan,
        cluster: Cluster,
        ids: IdMap,
        groups: GroupSessions,
        heartbeats: Heartbeats,
    ) -> None:
        self._plan = plan
        self._cluster = cluster
        self._ids = ids
        self._groups = groups
        self._heartbeats = heartbeats
        self._started_groups: set[str] = set()
        self._just_joined: set[tuple[str, str]] = set()
        self._failed: dict[tuple[str, str], str] = {}
        self._joining: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def join_missing(self, captured: CapturedExchange, message: Message) -> list[Change]:
        """
        Join the members of a request that have not joined yet.

        Args:
            captured: The request.
            message: The same, decoded. An unknown member that joins again gets an empty member id,
                as a new member.

        Raises:
            RewriteError: A member can't join.
        """
        body, changes = message.body, list[Change]()
        if body is None or message.api not in MEMBER_APIS | _JOIN_APIS:
            return changes
        if message.api in _STREAMS_APIS:
            if body.get("member_epoch", 1) and not self._is_known(body.group_id, body.member_id):
                raise RewriteError(CAN_NOT_JOIN)
            return changes
        if body.get("group_id"):
            await self._join_first(body.group_id)
        if message.api == "JoinGroup" and not self._is_known(body.group_id, body.member_id):
            request = captured.request_message().body
            if request is not None and body.member_id == request.member_id:
                body.member_id = ""  # not the id that the target has just given
        for group, member, _ in members_in(message):
            if was_not_member(captured):
                continue
            async with self._joining[group]:
                if not self._is_known(group, member):
                    await self._join(group, {member: captured})
            if (group, member) in self._failed:
                why = self._failed[group, member]
                raise RewriteError(f"{CAN_NOT_JOIN}, and could not join: {why}")
            if (group, member) in self._just_joined:
                self._just_joined.remove((group, member))
                live = self._ids.members.live(group, member)
                changes.append(Change("member_id", Role.MEMBER, member, live, JOINED))
        return changes

    async def _join_first(self, group: str) -> None:
        """Join all members together that were in the group before its first captured join."""
        seen = self._plan.groups.uncaptured_members.get(group)
        if not seen or group in self._started_groups:
            return
        async with self._joining[group]:
            if group not in self._started_groups:
                self._started_groups.add(group)
                await self._join(
                    group, {name: self._plan.step(at).captured for name, at in seen.items()}
                )

    def _is_known(self, group: str, member: str) -> bool:
        return not member or self._ids.members.knows(group, member)

    async def _join(self, group: str, members: dict[str, CapturedExchange]) -> None:
        """Join members, each given with a captured request; failures are recorded."""
        members = {each: by for each, by in members.items() if (group, each) not in self._failed}
        self._ids.uncaptured_members.update((group, each) for each in members)
        self._just_joined.update((group, each) for each in members)
        try:
            by_epoch = {each: by for each, by in members.items() if by.api in BY_EPOCH}
            for each, captured in by_epoch.items():
                await self._join_by_epoch(captured, group, each)
            if len(by_epoch) < len(members):
                await self._join_together(group, members)
        except (ReplayError, TimeoutError) as error:
            why = str(error) or f"not done in {self._cluster.timeout_s:g} s"
            self._failed.update(dict.fromkeys(((group, each) for each in members), why))

    async def _join_by_epoch(self, captured: CapturedExchange, group: str, member: str) -> None:
        found = api(captured.api_key)
        assert found is not None
        schema = found.request
        body = Container(
            {field.name: field.zero(schema.versions.high) for field in schema.fields},
            group_id=self._ids.names.prefixed(group),
            member_id=member,
            member_epoch=0,
            subscribed_topic_names=[self._ids.names.topic(each) for each in self._topics(group)],
            topic_partitions=[],
            rebalance_timeout_ms=_REBALANCE_MS,
        )
        node = await self._cluster.coordinator(CoordinatorType.GROUP, body.group_id)
        response = await self._cluster.request(node, found.name, body, client_id=captured.client_id)
        if response.error_code:
            raise ReplayError(
                self._cluster.addresses, f"{found.name}: {error_name(response.error_code)}"
            )
        live = response.member_id or member
        self._ids.members.learn(group, member, live)
        generation = generation_in(captured.request_message(), member)
        self._ids.members.learn_generation(group, member, generation, response.member_epoch)
        self._heartbeats.add_member(captured, Container(body, member_id=live), response)

    async def _join_together(self, group: str, members: dict[str, CapturedExchange]) -> None:
        """Join members of a classic group in one generation."""
        joining = []
        for name, captured in members.items():
            request = captured.request_message()
            instance = request.body.get("group_instance_id") if request.body is not None else None
            body = self._join_request(group, instance)
            joining.append(
                _UncapturedMember(group, name, generation_in(request, name), body, captured)
            )
        is_done = False
        try:
            with self._heartbeats.while_joining(self._ids.names.prefixed(group)):
                async with asyncio.timeout(self._cluster.timeout_s):
                    await self._join_one_generation(joining)
            is_done = True
        finally:
            await self._clean_up(joining, is_done)
        for each in joining:
            self._groups.add_uncaptured_member(group, each.member_id, partial(self._rejoin, each))

    async def _clean_up(self, joining: Sequence[_UncapturedMember], is_done: bool) -> None:
        """Close connections; send LeaveGroup for members that failed to join completely."""
        for each in joining:
            if each.connection is not None:
                each.connection.close()
            if is_done or not each.body.member_id:
                continue
            member = Container(member_id=each.body.member_id, group_instance_id=None, reason=None)
            leave_request = Container(group_id=each.body.group_id, members=[member], **member)
            with suppress(ReplayError):
                node = await self._cluster.coordinator(CoordinatorType.GROUP, each.body.group_id)
                await self._cluster.request(node, "LeaveGroup", leave_request)

    async def _rejoin(self, member: _UncapturedMember, number: int, name: str) -> Container | None:
        """Rejoin a member after a response reported a rebalance to it."""
        is_done = False
        try:
            with self._heartbeats.while_joining(member.body.group_id):
                async with asyncio.timeout(self._cluster.timeout_s):
                    await self._join_one_generation([member])
            is_done = True
        except TimeoutError:
            return None
        finally:
            await self._clean_up([member], is_done)
        return member.response

    async def _join_one_generation(self, joining: Sequence[_UncapturedMember]) -> None:
        """Join until all are in one generation, and fetch their assignments."""
        for each in joining:
            each.response = None
        await _gather(
            self._join_until(each, lambda: _are_in_one_generation(joining)) for each in joining
        )
        await _gather(self._sync(each) for each in joining)
        for each in joining:
            assert each.response is not None
            members = self._ids.members
            members.learn(each.group, each.member_id, each.response.member_id)
            members.learn_generation(
                each.group, each.member_id, each.generation, each.response.generation_id
            )
            self._heartbeats.add_member(each.captured, each.body, each.response)

    async def _join_until(self, member: _UncapturedMember, is_done: Callable[[], bool]) -> None:
        while True:
            member.response = await self._request(member, _JOIN, member.body)
            await asyncio.sleep(FIRST_PAUSE_S)
            if is_done():
                return

    async def _sync(self, member: _UncapturedMember) -> None:
        response = member.response
        assert response is not None
        members = response.members if response.leader == response.member_id else []
        body = Container(
            group_id=member.body.group_id,
            generation_id=response.generation_id,
            member_id=response.member_id,
            group_instance_id=member.body.group_instance_id,
            protocol_type=member.body.protocol_type,
            protocol_name=response.protocol_name,
            assignments=[Container(member_id=each.member_id, assignment=b"") for each in members],
        )
        await self._request(member, _SYNC, body)

    async def _request(self, member: _UncapturedMember, key: int, body: Container) -> Container:
        """Send to the coordinator, with retries; adopt the member id that it assigns."""
        async for _ in self._cluster.attempts("a member of a group could not join"):
            connection = await self._connection(member)
            low_high = connection.versions.get(key, (0, -1))
            found = api(key)
            assert found is not None
            version = min(low_high[1], found.request.versions.high)
            patience_s = body.get("rebalance_timeout_ms", _REBALANCE_MS) / 1000
            response = await connection.request(key, version, body, patience_s=patience_s)
            assert response is not None
            error = response.error_code
            if not error or (key == _SYNC and error == REBALANCES):
                if key == _JOIN:
                    body.member_id = response.member_id
                return response
            if error == _ID_REQUIRED:
                body.member_id = response.member_id
            elif error in MISROUTED:
                self._cluster.forget_coordinator(CoordinatorType.GROUP, body.group_id)
                connection.close()
            elif not ERRORS.get(error, ("", False))[1]:
                raise ReplayError(self._cluster.addresses, f"{found.name}: {error_name(error)}")
        raise AssertionError("attempts end with an error")

    async def _connection(self, member: _UncapturedMember) -> BrokerConnection:
        """Return the member's own connection: a pending JoinGroup blocks a connection."""
        connection = member.connection
        if connection is None or connection.failure is not None:
            group = member.body.group_id
            node = await self._cluster.coordinator(CoordinatorType.GROUP, group)
            node = self._cluster.any_node if node is None else node
            connection = member.connection = await self._cluster.open(
                node, member.captured.client_id
            )
        return connection

    def _join_request(self, group: str, instance: str | None) -> Container:
        """Return the body of a JoinGroup request for a member of a group."""
        shown = self._plan.groups.first_joins.get(group)
        if shown is not None:
            request = self._plan.step(shown).captured.request_message()
            found = rewrite(request, request.api_version or 0, self._ids)
            if not found.refusal:
                fields = {"rebalance_timeout_ms": _REBALANCE_MS, "reason": None} | dict(found.body)
                return Container(fields, member_id="", group_instance_id=instance)
        topics = [self._ids.names.topic(each) for each in self._topics(group)]
        return Container(
            group_id=self._ids.names.prefixed(group),
            session_timeout_ms=_SESSION_MS,
            rebalance_timeout_ms=_REBALANCE_MS,
            member_id="",
            group_instance_id=instance,
            protocol_type="consumer",
            protocols=[Container(name="range", metadata=consumer_subscription(topics))],
            reason=None,
        )

    def _topics(self, group: str) -> list[str]:
        """Return the captured names of the topics of a group, as far as the capture shows them."""
        known = self._plan.group_topics.get(group, ())
        name_of = self._ids.captured_topics.topic_name
        names = {each if isinstance(each, str) else name_of(each) for each in known}
        return sorted(name for name in names if name)


async def _gather(work: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Run coroutines concurrently; the first failure cancels the others."""
    tasks = [asyncio.ensure_future(each) for each in work]
    try:
        await asyncio.gather(*tasks)
    finally:
        for each in tasks:
            each.cancel()


def _are_in_one_generation(joining: Sequence[_UncapturedMember]) -> bool:
    """Return whether all members have joined the same generation."""
    responses = [each.response for each in joining]
    return len({response.generation_id if response else None for response in responses}) == 1
