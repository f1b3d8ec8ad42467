"""
Members of groups say that they are there, where the replay waits longer than the capture did.

Source: KIP-62 (classic groups), KIP-848, KIP-932 (those that the broker assigns).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from construct import Container

from dissector.errors import ReplayError
from dissector.protocol.apis import KEYS, api
from dissector.protocol.messages import Message
from replay.cluster import Cluster, Coordinated
from replay.route import MISROUTED
from replay.step import Captured, Step
from replay.turns import REBALANCES, has_partitions
from replay.world import World

_BY_EPOCH = frozenset({"ConsumerGroupHeartbeat", "ShareGroupHeartbeat"})
_SAYS = _BY_EPOCH | {"JoinGroup", "SyncGroup", "Heartbeat"}
"""APIs by which a member says that it is there."""

_GOES_ON = MISROUTED | {0, REBALANCES}
"""Errors after which a member still is one."""

_PART_OF_SESSION = 3
"""A classic member beats thrice a session, at the least often that clients are advised to."""

_SOON_S = 0.1
"""
A classic member beats so often while another waits to join: who joins is answered when all members
know of it, and have joined again.
"""

_INTERVALS, _INTERVALS_ALIVE = 2, 9
"""
In heartbeat intervals: when we speak for a member whose client has not spoken, which it does every
interval; and how long the broker takes it for alive (Kafka's defaults are 5 s and 45 s).
"""


@dataclass(slots=True)
class _Member:
    """
    A member on the target.

    Attributes:
        connection: The captured connection on which it speaks.
        client_id: What it signs with.
        api: By which it is kept alive.
        body: What is said then.
        every_s: How long it may say nothing.
        alive_ns: How long the broker takes it for alive.
        said_ns: When, in the capture, it spoke last.
        timer: Set while nothing of its own is on the way.
        news: An assignment that was told to us, or sooner than in the capture: the heartbeat is to
            be told that shows it there.
    """

    connection: int
    client_id: str | None
    api: str
    body: dict[str, Any]
    every_s: float
    alive_ns: int
    said_ns: int
    timer: asyncio.TimerHandle | None = None
    news: Container | None = None

    @property
    def key(self) -> tuple[str, str]:
        return self.body["group_id"], self.body["member_id"]


class Heartbeats:
    """
    Speaks for the members of a pass, as long as the capture shows that they were there.

    A member that the capture lets go, as it was silent for longer than its session, is not kept.

    Args:
        cluster: The target.
        world: What it has in the place of what was captured.
        rebalances: Takes group and member, by their captured names, that we were told of a
            rebalance for; returns whether it still is a member.
    """

    def __init__(
        self, cluster: Cluster, world: World, rebalances: Callable[[str, str], Awaitable[bool]]
    ) -> None:
        self._cluster = cluster
        self._world = world
        self._rebalances = rebalances
        self._members: dict[tuple[str, str], _Member] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._next_ns: dict[int, int] = {}
        self._joining: Counter[str] = Counter()
        self._reached_ns = 0
        self._loop = asyncio.get_running_loop()

    def awaits(self, connection: int, begun_ns: int) -> None:
        """Note what is sent next on a captured connection, as soon as it may be."""
        self._next_ns[connection] = begun_ns

    def reaches(self, begun_ns: int) -> None:
        """Note how far the pass has come."""
        self._reached_ns = max(self._reached_ns, begun_ns)

    def sent(self, name: str, body: Container) -> None:
        """Note a request as it is sent: while it is on the way we say nothing."""
        if name == "LeaveGroup":
            for each in body.get("members") or [body]:
                self._forget((body.group_id, each.member_id))
        elif name in _SAYS:
            if name == "JoinGroup":
                self._joining[body.group_id] += 1
                self._haste(body.group_id)
            member = self._members.get((body.group_id, body.member_id))
            if member is not None and member.timer is not None:
                member.timer.cancel()
                member.timer = None
            if name in _BY_EPOCH and body.member_epoch < 0:
                self._forget((body.group_id, body.member_id))

    def answered(
        self, step: Step, before: Message | None, body: Container, answer: Container
    ) -> None:
        """
        Note what a request was answered; an assignment that was told before is added.

        Args:
            step: The captured request.
            before: Its captured answer.
            body: What was sent.
            answer: What came back.
        """
        captured = step.captured
        name = captured.api
        if name not in _SAYS:
            return
        key = body.group_id, answer.get("member_id") or body.member_id
        known = self._members.get(key)
        if name == "JoinGroup":
            self._joining[body.group_id] -= 1
        if answer.error_code not in _GOES_ON:
            self._forget(key)
            return
        if name == "JoinGroup" and not answer.error_code:
            member = _classic(captured, body, answer)
        elif name in _BY_EPOCH and answer.member_epoch > 0:
            member = _by_epoch(captured, key, answer)
            member.news = _told(known, step, before, answer)
        elif known is not None:
            member = known
        else:
            return
        member.connection, member.said_ns = captured.connection, captured.request_time_ns
        self._forget(key)
        self._members[key] = member
        self._wait(member)

    def joined(self, captured: Captured, body: Container, answer: Container) -> None:
        """
        Note a member that joined without a step.

        Args:
            captured: A request by which it is known.
            body: With what it joined.
            answer: What came back.
        """
        if captured.api in _BY_EPOCH:
            member = _by_epoch(captured, (body.group_id, answer.member_id), answer)
            member.news = answer.assignment
        else:
            member = _classic(captured, body, answer)
        member.said_ns = captured.request_time_ns
        self._forget(member.key)
        self._members[member.key] = member
        self._wait(member)

    @contextmanager
    def while_joining(self, group: str) -> Iterator[None]:
        """Speak often for the members of a group, which may have to join again too."""
        self._joining[group] += 1
        self._haste(group)
        try:
            yield
        finally:
            self._joining[group] -= 1

    def urge(self, groups: Collection[str]) -> None:
        """Speak at once for all members of groups that are not speaking themselves."""
        for member in list(self._members.values()):
            if member.body["group_id"] in groups and member.timer is not None:
                member.timer.cancel()
                self._speak(member)

    def _haste(self, group: str) -> None:
        """Speak soon for the members of a group, which may have to join again too."""
        for member in self._members.values():
            if member.body["group_id"] == group and member.timer is not None:
                member.timer.cancel()
                self._wait(member)

    def stop(self) -> None:
        """Say nothing any more."""
        for key in list(self._members):
            self._forget(key)
        for task in self._tasks:
            task.cancel()

    def _forget(self, key: tuple[str, str]) -> None:
        member = self._members.pop(key, None)
        if member is not None and member.timer is not None:
            member.timer.cancel()

    def _wait(self, member: _Member) -> None:
        is_joined = self._joining[member.body["group_id"]] > 0 and member.api not in _BY_EPOCH
        every_s = min(member.every_s, _SOON_S) if is_joined else member.every_s
        member.timer = self._loop.call_later(every_s, self._speak, member)

    def _speak(self, member: _Member) -> None:
        now_ns = max(self._reached_ns, self._next_ns.get(member.connection, 0))
        if now_ns - member.said_ns >= member.alive_ns:
            self._forget(member.key)
            return
        task = self._loop.create_task(self._beat(member))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _beat(self, member: _Member) -> None:
        group, timer = member.body["group_id"], member.timer
        error = 0
        try:
            node = await self._cluster.coordinator(Coordinated.GROUP, group)
            answer = await self._cluster.ask(
                node, member.api, member.body, client_id=member.client_id
            )
            error = answer.error_code
            if member.api in _BY_EPOCH and not error:
                self._learn(member, answer)
        except ReplayError:
            pass  # who plays the member is told when it asks itself
        if error in MISROUTED:
            self._cluster.forget_coordinator(Coordinated.GROUP, group)
        if self._members.get(member.key) is not member or member.timer is not timer:
            return  # it has spoken itself meanwhile
        if error in _GOES_ON:
            self._wait(member)
        else:
            self._forget(member.key)
        if error == REBALANCES and not await self._rebalances(*self._captured(member)):
            self._forget(member.key)

    def _captured(self, member: _Member) -> tuple[str, str]:
        """Return the captured names of group and member."""
        group = self._world.names.captured_other(member.body["group_id"])
        return group, self._world.members.captured(group, member.body["member_id"])

    def _learn(self, member: _Member, answer: Container) -> None:
        """Take over a new epoch, which the capture has no counterpart of, and an assignment."""
        group, title = self._captured(member)
        members, before = self._world.members, member.body["member_epoch"]
        if answer.assignment is not None:
            member.news = answer.assignment
        if answer.member_epoch > before:
            turn = members.captured_turn(group, title, before)
            members.learn_turn(group, title, turn, answer.member_epoch)
            member.body["member_epoch"] = answer.member_epoch


def _told(
    known: _Member | None, step: Step, before: Message | None, answer: Container
) -> Container | None:
    """Add what a member is still to be told, if the capture shows it here; return what is left."""
    if step.is_unassigned and has_partitions(answer):
        return answer.assignment  # the capture shows it later
    if known is None or known.news is None or answer.assignment is not None:
        return None
    is_shown = before is not None and before.body is not None and before.body.assignment is not None
    if step.is_unassigned or not is_shown:
        return known.news
    answer.assignment = known.news
    return None


def _classic(captured: Captured, body: Container, answer: Container) -> _Member:
    said = {
        "group_id": body.group_id,
        "generation_id": answer.generation_id,
        "member_id": answer.member_id,
        "group_instance_id": body.get("group_instance_id"),
    }
    session_ms = body.session_timeout_ms
    every_s = session_ms / 1000 / _PART_OF_SESSION
    return _Member(
        captured.connection,
        captured.client_id,
        "Heartbeat",
        said,
        every_s,
        session_ms * 1_000_000,
        0,
    )


def _by_epoch(captured: Captured, key: tuple[str, str], answer: Container) -> _Member:
    found = api(KEYS[captured.api])
    assert found is not None
    schema = found.request
    said = {field.name: field.zero(schema.versions.high) for field in schema.fields}
    said |= {"group_id": key[0], "member_id": key[1], "member_epoch": answer.member_epoch}
    interval_ms = answer.heartbeat_interval_ms
    every_s = interval_ms / 1000 * _INTERVALS
    alive_ns = interval_ms * 1_000_000 * _INTERVALS_ALIVE
    return _Member(
        captured.connection, captured.client_id, captured.api, said, every_s, alive_ns, 0
    )
