"""
Heartbeats for group members, sent where the replay pauses for longer than the capture did.

Source: KIP-62 (classic groups), KIP-848, KIP-932 (groups whose broker assigns partitions).
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
from replay.client.cluster import Cluster, CoordinatorType
from replay.client.router import MISROUTED
from replay.mapping.id_map import IdMap
from replay.model.step import CapturedExchange, Step
from replay.plan.group_order import REBALANCES, has_partitions

_BY_EPOCH = frozenset({"ConsumerGroupHeartbeat", "ShareGroupHeartbeat"})
_SAYS = _BY_EPOCH | {"JoinGroup", "SyncGroup", "Heartbeat"}
"""APIs whose requests keep a member's session alive."""

_GOES_ON = MISROUTED | {0, REBALANCES}
"""Error codes after which the member still belongs to its group."""

_PART_OF_SESSION = 3
"""Heartbeats per session of a classic member: the minimum that clients are advised to send."""

_SOON_S = 0.1
"""
Heartbeat interval in seconds of a classic member while another member is joining: the coordinator
answers JoinGroup only when all members have learned of the rebalance and joined again.
"""

_INTERVALS, _INTERVALS_ALIVE = 2, 9
"""
In heartbeat intervals: how long a client, which normally sends a heartbeat every interval, may be
silent before we send one for it, and the session timeout (Kafka's defaults are 5 s and 45 s).
"""


@dataclass(slots=True)
class _Member:
    """
    A member on the target.

    Attributes:
        connection: The member's captured connection.
        client_id: The client id of its requests.
        api: The API of its heartbeats.
        body: The body of its heartbeats.
        every_s: The longest time between two of its requests.
        alive_ns: The session timeout.
        said_ns: The time of its last captured request.
        timer: The timer of the next heartbeat; None while a request of the member is in flight.
        news: An assignment that arrived in answer to one of our heartbeats, or earlier than in the
            capture; it is added to the response of the heartbeat that shows it in the capture.
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
    Sends heartbeats for the members of a pass, as long as the capture shows that they exist.

    A member whose captured silence exceeds its session timeout is left to expire.

    Args:
        cluster: The target.
        world: The id mapping.
        rebalances: Called with the captured names of a group and a member when a heartbeat reports
            a rebalance; returns whether the member still belongs to the group.
    """

    def __init__(
        self, cluster: Cluster, world: IdMap, rebalances: Callable[[str, str], Awaitable[bool]]
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
        """Note the capture time of a connection's next request, as soon as it may be sent."""
        self._next_ns[connection] = begun_ns

    def reaches(self, begun_ns: int) -> None:
        """Note the capture time that the pass has reached."""
        self._reached_ns = max(self._reached_ns, begun_ns)

    def sent(self, name: str, body: Container) -> None:
        """Note a request as it is sent; heartbeats pause while it is in flight."""
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
        Note a member's response, and add an assignment that arrived earlier.

        Args:
            step: The captured request.
            before: Its captured response.
            body: The body of the sent request.
            answer: The body of the target's response.
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

    def joined(self, captured: CapturedExchange, body: Container, answer: Container) -> None:
        """
        Note a member that joined without a captured join.

        Args:
            captured: A captured request of the member.
            body: The body of its join request.
            answer: The body of the response to that.
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
        """Send frequent heartbeats for a group's members, who may have to join again too."""
        self._joining[group] += 1
        self._haste(group)
        try:
            yield
        finally:
            self._joining[group] -= 1

    def urge(self, groups: Collection[str]) -> None:
        """Send heartbeats at once for all group members without a request in flight."""
        for member in list(self._members.values()):
            if member.body["group_id"] in groups and member.timer is not None:
                member.timer.cancel()
                self._speak(member)

    def _haste(self, group: str) -> None:
        """Bring forward the heartbeats of a group's members, who may have to join again too."""
        for member in self._members.values():
            if member.body["group_id"] == group and member.timer is not None:
                member.timer.cancel()
                self._wait(member)

    def stop(self) -> None:
        """Stop all heartbeats."""
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
            node = await self._cluster.coordinator(CoordinatorType.GROUP, group)
            answer = await self._cluster.request(
                node, member.api, member.body, client_id=member.client_id
            )
            error = answer.error_code
            if member.api in _BY_EPOCH and not error:
                self._learn(member, answer)
        except ReplayError:
            pass  # the player of this member gets the same error with its own requests
        if error in MISROUTED:
            self._cluster.forget_coordinator(CoordinatorType.GROUP, group)
        if self._members.get(member.key) is not member or member.timer is not timer:
            return  # the member has sent a request of its own meanwhile
        if error in _GOES_ON:
            self._wait(member)
        else:
            self._forget(member.key)
        if error == REBALANCES and not await self._rebalances(*self._captured(member)):
            self._forget(member.key)

    def _captured(self, member: _Member) -> tuple[str, str]:
        """Return the captured names of the member and its group."""
        group = self._world.names.unprefixed(member.body["group_id"])
        return group, self._world.members.captured(group, member.body["member_id"])

    def _learn(self, member: _Member, answer: Container) -> None:
        """Learn a new assignment, and a new epoch, which has no counterpart in the capture."""
        group, title = self._captured(member)
        members, before = self._world.members, member.body["member_epoch"]
        if answer.assignment is not None:
            member.news = answer.assignment
        if answer.member_epoch > before:
            turn = members.captured_generation(group, title, before)
            members.learn_generation(group, title, turn, answer.member_epoch)
            member.body["member_epoch"] = answer.member_epoch


def _told(
    known: _Member | None, step: Step, before: Message | None, answer: Container
) -> Container | None:
    """Add the pending assignment to a response if the capture has it there; return what remains."""
    if step.is_before_assignment and has_partitions(answer):
        return answer.assignment  # the capture shows it later
    if known is None or known.news is None or answer.assignment is not None:
        return None
    is_shown = before is not None and before.body is not None and before.body.assignment is not None
    if step.is_before_assignment or not is_shown:
        return known.news
    answer.assignment = known.news
    return None


def _classic(captured: CapturedExchange, body: Container, answer: Container) -> _Member:
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


def _by_epoch(captured: CapturedExchange, key: tuple[str, str], answer: Container) -> _Member:
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
