"""
Members of groups whose join the capture does not show, as it begins midway or has gaps.

They join on the target when the first thing is asked for their group: all members of a classic
group that were there before join together, with the subscription that the capture shows of the
group, or else to the topics that it commits to; members that the broker assigns with epoch 0.
Members of a Streams group can't: nobody knows their topology.

Source: KIP-62, KIP-394 (classic groups); KIP-848, KIP-932, KIP-1071.
"""

from __future__ import annotations

import asyncio
import struct
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from construct import Container

from dissector.errors import ReplayError
from dissector.protocol.apis import KEYS, api
from dissector.protocol.error_codes import ERRORS, error_code, error_name
from dissector.protocol.messages import Message
from replay.client.broker_connection import BrokerConnection
from replay.client.cluster import Cluster, CoordinatorType
from replay.client.router import MISROUTED
from replay.fields.field_layout import Role
from replay.mapping.id_map import IdMap
from replay.mapping.request_rewriter import rewrite
from replay.model.outcome import Change
from replay.model.refusal import RewriteError
from replay.model.step import CapturedExchange
from replay.plan.group_order import REBALANCES
from replay.plan.plan import Plan
from replay.sessions.group_sessions import Groups
from replay.sessions.heartbeats import Heartbeats
from replay.sessions.retry_policy import FIRST_PAUSE_S

JOINED = "joined before"
"""The rule by which a member joined whose own join the capture does not show."""

CAN_NOT_JOIN = "its member joined before the capture or in a gap"

_BY_EPOCH = frozenset({"ConsumerGroupHeartbeat", "ShareGroupHeartbeat"})
_OF_MEMBERS = _BY_EPOCH | {
    "Heartbeat",
    "LeaveGroup",
    "OffsetCommit",
    "OffsetFetch",
    "SyncGroup",
    "TxnOffsetCommit",
}

_OF_STREAMS = frozenset({"StreamsGroupHeartbeat", "StreamsGroupTopologyDescriptionUpdate"})
_JOINING = frozenset({"JoinGroup"}) | _OF_STREAMS

_ID_REQUIRED = error_code("MEMBER_ID_REQUIRED")
_SESSION_MS, _REBALANCE_MS = 45_000, 60_000
"""Defaults of Kafka's consumer, which the capture does not show."""

_JOIN, _SYNC = KEYS["JoinGroup"], KEYS["SyncGroup"]


@dataclass(slots=True)
class _Stranger:
    """
    A member of a classic group that joins on the target.

    Attributes:
        group: As captured.
        name: The captured member id.
        turn: The first captured generation that it is seen in.
        body: With what it joins.
        captured: The request that it is known by.
        link: Its connection while it joins.
        answer: The last answer to a join; None while one is under way.
    """

    group: str
    name: str
    turn: int
    body: Container
    captured: CapturedExchange
    link: BrokerConnection | None = None
    answer: Container | None = None


class Strangers:
    """
    The members of a pass that the capture does not show how they joined.

    Args:
        plan: What is played.
        cluster: The target.
        world: What it has in the place of what was captured.
        groups: Is told who has joined.
        heartbeats: Keep them alive.
    """

    def __init__(
        self, plan: Plan, cluster: Cluster, world: IdMap, groups: Groups, heartbeats: Heartbeats
    ) -> None:
        self._plan = plan
        self._cluster = cluster
        self._world = world
        self._groups = groups
        self._heartbeats = heartbeats
        self._begun: set[str] = set()
        self._new: set[tuple[str, str]] = set()
        self._failed: dict[tuple[str, str], str] = {}
        self._joining: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def introduce(self, captured: CapturedExchange, message: Message) -> list[Change]:
        """
        Have the members join that a request names and that have not.

        Args:
            captured: The request.
            message: The same, decoded; who joins again without being known joins as somebody new.

        Raises:
            Refused: One can't join.
        """
        body, changes = message.body, list[Change]()
        if body is None or message.api not in _OF_MEMBERS | _JOINING:
            return changes
        if message.api in _OF_STREAMS:
            if body.get("member_epoch", 1) and not self._knows(body.group_id, body.member_id):
                raise RewriteError(CAN_NOT_JOIN)
            return changes
        if body.get("group_id"):
            await self._join_first(body.group_id)
        if message.api == "JoinGroup" and not self._knows(body.group_id, body.member_id):
            asked = captured.request_message().body
            if asked is not None and body.member_id == asked.member_id:
                body.member_id = ""  # not the id that the target has just given
        for group, member, _ in _members(message):
            if _is_no_member(captured):
                continue
            async with self._joining[group]:
                if not self._knows(group, member):
                    await self._join(group, {member: captured})
            if (group, member) in self._failed:
                why = self._failed[group, member]
                raise RewriteError(f"{CAN_NOT_JOIN}, and could not join: {why}")
            if (group, member) in self._new:
                self._new.remove((group, member))
                live = self._world.members.live(group, member)
                changes.append(Change("member_id", Role.MEMBER, member, live, JOINED))
        return changes

    async def _join_first(self, group: str) -> None:
        """Have those join together that were there before anybody is seen to join."""
        seen = self._plan.groups.strangers.get(group)
        if not seen or group in self._begun:
            return
        async with self._joining[group]:
            if group not in self._begun:
                self._begun.add(group)
                await self._join(
                    group, {name: self._plan.step(at).captured for name, at in seen.items()}
                )

    def _knows(self, group: str, member: str) -> bool:
        return not member or self._world.members.knows(group, member)

    async def _join(self, group: str, members: dict[str, CapturedExchange]) -> None:
        """Have members join, each known by a captured request; what fails is noted."""
        members = {each: by for each, by in members.items() if (group, each) not in self._failed}
        self._world.uncaptured_members.update((group, each) for each in members)
        self._new.update((group, each) for each in members)
        try:
            by_epoch = {each: by for each, by in members.items() if by.api in _BY_EPOCH}
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
            group_id=self._world.names.prefixed(group),
            member_id=member,
            member_epoch=0,
            subscribed_topic_names=[self._world.names.topic(each) for each in self._topics(group)],
            topic_partitions=[],
            rebalance_timeout_ms=_REBALANCE_MS,
        )
        node = await self._cluster.coordinator(CoordinatorType.GROUP, body.group_id)
        answer = await self._cluster.request(node, found.name, body, client_id=captured.client_id)
        if answer.error_code:
            raise ReplayError(
                self._cluster.addresses, f"{found.name}: {error_name(answer.error_code)}"
            )
        live = answer.member_id or member
        self._world.members.learn(group, member, live)
        turn = _turn(captured.request_message(), member)
        self._world.members.learn_generation(group, member, turn, answer.member_epoch)
        self._heartbeats.joined(captured, Container(body, member_id=live), answer)

    async def _join_together(self, group: str, members: dict[str, CapturedExchange]) -> None:
        """Have members of a classic group join in one generation."""
        strangers = []
        for name, captured in members.items():
            asked = captured.request_message()
            instance = asked.body.get("group_instance_id") if asked.body is not None else None
            body = self._joining_with(group, instance)
            strangers.append(_Stranger(group, name, _turn(asked, name), body, captured))
        is_done = False
        try:
            with self._heartbeats.while_joining(self._world.names.prefixed(group)):
                async with asyncio.timeout(self._cluster.timeout_s):
                    await self._join_as_one(strangers)
            is_done = True
        finally:
            await self._part(strangers, is_done)
        for each in strangers:
            self._groups.introduce(group, each.name, partial(self._again, each))

    async def _part(self, strangers: Sequence[_Stranger], is_done: bool) -> None:
        """Close connections; have those leave that others would wait for in vain."""
        for each in strangers:
            if each.link is not None:
                each.link.close()
            if is_done or not each.body.member_id:
                continue
            member = Container(member_id=each.body.member_id, group_instance_id=None, reason=None)
            leaving = Container(group_id=each.body.group_id, members=[member], **member)
            with suppress(ReplayError):
                node = await self._cluster.coordinator(CoordinatorType.GROUP, each.body.group_id)
                await self._cluster.request(node, "LeaveGroup", leaving)

    async def _again(self, stranger: _Stranger, number: int, name: str) -> Container | None:
        """Have a member join again that is told of a rebalance."""
        is_done = False
        try:
            with self._heartbeats.while_joining(stranger.body.group_id):
                async with asyncio.timeout(self._cluster.timeout_s):
                    await self._join_as_one([stranger])
            is_done = True
        except TimeoutError:
            return None
        finally:
            await self._part([stranger], is_done)
        return stranger.answer

    async def _join_as_one(self, strangers: Sequence[_Stranger]) -> None:
        """Join until all are in one generation, and ask for their parts."""
        for each in strangers:
            each.answer = None
        await _all(self._join_until(each, lambda: _are_one(strangers)) for each in strangers)
        await _all(self._sync(each) for each in strangers)
        for each in strangers:
            assert each.answer is not None
            members = self._world.members
            members.learn(each.group, each.name, each.answer.member_id)
            members.learn_generation(each.group, each.name, each.turn, each.answer.generation_id)
            self._heartbeats.joined(each.captured, each.body, each.answer)

    async def _join_until(self, stranger: _Stranger, is_done: Callable[[], bool]) -> None:
        while True:
            stranger.answer = await self._asked(stranger, _JOIN, stranger.body)
            await asyncio.sleep(FIRST_PAUSE_S)
            if is_done():
                return

    async def _sync(self, stranger: _Stranger) -> None:
        answer = stranger.answer
        assert answer is not None
        members = answer.members if answer.leader == answer.member_id else []
        body = Container(
            group_id=stranger.body.group_id,
            generation_id=answer.generation_id,
            member_id=answer.member_id,
            group_instance_id=stranger.body.group_instance_id,
            protocol_type=stranger.body.protocol_type,
            protocol_name=answer.protocol_name,
            assignments=[Container(member_id=each.member_id, assignment=b"") for each in members],
        )
        await self._asked(stranger, _SYNC, body)

    async def _asked(self, stranger: _Stranger, key: int, body: Container) -> Container:
        """Ask the coordinator, again while it is not ready; take over the id that it gives."""
        async for _ in self._cluster.attempts("a member of a group could not join"):
            link = await self._connected(stranger)
            low_high = link.versions.get(key, (0, -1))
            found = api(key)
            assert found is not None
            version = min(low_high[1], found.request.versions.high)
            patience_s = body.get("rebalance_timeout_ms", _REBALANCE_MS) / 1000
            answer = await link.request(key, version, body, patience_s=patience_s)
            assert answer is not None
            error = answer.error_code
            if not error or (key == _SYNC and error == REBALANCES):
                if key == _JOIN:
                    body.member_id = answer.member_id
                return answer
            if error == _ID_REQUIRED:
                body.member_id = answer.member_id
            elif error in MISROUTED:
                self._cluster.forget_coordinator(CoordinatorType.GROUP, body.group_id)
                link.close()
            elif not ERRORS.get(error, ("", False))[1]:
                raise ReplayError(self._cluster.addresses, f"{found.name}: {error_name(error)}")
        raise AssertionError("attempts end with an error")

    async def _connected(self, stranger: _Stranger) -> BrokerConnection:
        """Return a connection of its own: a broker takes nothing else while a member joins."""
        link = stranger.link
        if link is None or link.failure is not None:
            group = stranger.body.group_id
            node = await self._cluster.coordinator(CoordinatorType.GROUP, group)
            node = self._cluster.any_node if node is None else node
            link = stranger.link = await self._cluster.open(node, stranger.captured.client_id)
        return link

    def _joining_with(self, group: str, instance: str | None) -> Container:
        """Return with what a member of a group joins."""
        shown = self._plan.groups.joins.get(group)
        if shown is not None:
            asked = self._plan.step(shown).captured.request_message()
            found = rewrite(asked, asked.api_version or 0, self._world)
            if not found.refusal:
                more = {"rebalance_timeout_ms": _REBALANCE_MS, "reason": None} | dict(found.body)
                return Container(more, member_id="", group_instance_id=instance)
        topics = [self._world.names.topic(each) for each in self._topics(group)]
        return Container(
            group_id=self._world.names.prefixed(group),
            session_timeout_ms=_SESSION_MS,
            rebalance_timeout_ms=_REBALANCE_MS,
            member_id="",
            group_instance_id=instance,
            protocol_type="consumer",
            protocols=[Container(name="range", metadata=_subscription(topics))],
            reason=None,
        )

    def _topics(self, group: str) -> list[str]:
        return sorted(self._plan.group_topics.get(group, ()))


async def _all(work: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Do several things at once; the first that fails ends the others."""
    tasks = [asyncio.ensure_future(each) for each in work]
    try:
        await asyncio.gather(*tasks)
    finally:
        for each in tasks:
            each.cancel()


def _are_one(strangers: Sequence[_Stranger]) -> bool:
    """Tell whether all have joined, in one generation."""
    answers = [each.answer for each in strangers]
    return len({answer.generation_id if answer else None for answer in answers}) == 1


def _members(message: Message) -> Iterator[tuple[str, str, int]]:
    """Yield group, member and generation or epoch of the members that a request is asked for."""
    body = message.body
    if body is None or message.api not in _OF_MEMBERS:
        return
    if message.api == "LeaveGroup":
        for each in body.get("members") or [body]:
            yield body.group_id, each.member_id, 1
        return
    for of in body.get("groups") or [body]:
        names = "generation_id", "generation_id_or_member_epoch", "member_epoch"
        turn = next((of[name] for name in names if name in of), -1)
        if of.get("group_id") and of.get("member_id") and turn > 0:
            yield of.group_id, of.member_id, turn


def _turn(message: Message, member: str) -> int:
    """Return in which generation or epoch a member asks."""
    return next((turn for _, name, turn in _members(message) if name == member), 1)


def _is_no_member(captured: CapturedExchange) -> bool:
    """Tell whether the captured broker did not take who asks for a member."""
    told = captured.response_message()
    error = 0 if told is None or told.body is None else told.body.get("error_code", 0)
    return error not in (0, REBALANCES)


def _subscription(topics: Sequence[str]) -> bytes:
    """Write the oldest subscription of a consumer: ConsumerProtocolSubscription v0."""
    names = [each.encode() for each in topics]
    listed = b"".join(struct.pack(">h", len(each)) + each for each in names)
    return struct.pack(">hi", 0, len(names)) + listed + struct.pack(">i", -1)
