"""
Heartbeats for group members, sent in pauses that are longer than in the capture.

Source: KIP-62 (classic groups), KIP-848, KIP-932 (groups with broker-assigned partitions).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from construct import Container

from cluster.client.cluster import Cluster, CoordinatorType
from cluster.client.router import MISROUTED
from dissector.engine.exchanges.captured_exchange import CapturedExchange
from dissector.errors import ReplayError
from dissector.protocol.apis import KEYS, api
from dissector.protocol.messages import Message
from replay.mapping.id_map import IdMap
from replay.model.step import Step
from replay.order.group_order import REBALANCES, has_partitions, leaving_members

_BY_EPOCH = frozenset({"ConsumerGroupHeartbeat", "ShareGroupHeartbeat"})
_KEEPS_ALIVE = _BY_EPOCH | {"JoinGroup", "SyncGroup", "Heartbeat"}
"""APIs with requests that keep a member's session alive."""

_STILL_MEMBER = MISROUTED | {0, REBALANCES}
"""Error codes that leave the member in its group."""

_HEARTBEATS_PER_SESSION = 3
"""Heartbeats per session of a classic member: the minimum that clients are advised to send."""

_JOINING_INTERVAL_S = 0.1
"""
Heartbeat interval in seconds of a classic member while another member is joining: the coordinator
answers JoinGroup only when all members have learned of the rebalance and joined again.
"""

_SILENCE_INTERVALS, _SESSION_INTERVALS = 2, 9
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
        interval_s: The longest time between two of its requests.
        session_timeout_ns: The session timeout.
        last_request_ns: The time of its last captured request.
        timer: The timer of the next heartbeat; None while a request of the member is in flight.
        pending_assignment: An assignment received in response to one of our heartbeats, or earlier
            than in the capture; it is added to the response that has it in the capture.
    """

    connection: int
    client_id: str | None
    api: str
    body: dict[str, Any]
    interval_s: float
    session_timeout_ns: int
    last_request_ns: int
    timer: asyncio.TimerHandle | None = None
    pending_assignment: Container | None = None

    @property
    def key(self) -> tuple[str, str]:
        return self.body["group_id"], self.body["member_id"]


class Heartbeats:
    """
    Sends heartbeats for the members of a pass, as long as the capture shows that they exist.

    A member with a captured silence beyond its session timeout is left to expire.

    Args:
        cluster: The target.
        ids: The id mapping.
        on_rebalance: Called with the captured ids of a group and a member when a heartbeat
            reports a rebalance; returns whether the member still belongs to the group.
    """

    def __init__(
        self, cluster: Cluster, ids: IdMap, on_rebalance: Callable[[str, str], Awaitable[bool]]
    ) -> None:
        self._cluster = cluster
        self._ids = ids
        self._on_rebalance = on_rebalance
        self._members: dict[tuple[str, str], _Member] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._next_ns: dict[int, int] = {}
        self._joining: Counter[str] = Counter()
        self._reached_ns = 0
        self._loop = asyncio.get_running_loop()

    def expect_request(self, connection: int, request_ns: int) -> None:
        """Record the capture time of a connection's next request, as soon as it may be sent."""
        self._next_ns[connection] = request_ns

    def advance_to(self, request_ns: int) -> None:
        """Record the capture time that the pass has reached."""
        self._reached_ns = max(self._reached_ns, request_ns)

    def record_request(self, name: str, body: Container) -> None:
        """Record a sent request; heartbeats pause while it is in flight."""
        if name == "LeaveGroup":
            for left in leaving_members(body):
                self._forget((body.group_id, left))
        elif name in _KEEPS_ALIVE:
            if name == "JoinGroup":
                self._joining[body.group_id] += 1
                self._hasten(body.group_id)
            member = self._members.get((body.group_id, body.member_id))
            if member is not None and member.timer is not None:
                member.timer.cancel()
                member.timer = None
            if name in _BY_EPOCH and body.member_epoch < 0:
                self._forget((body.group_id, body.member_id))

    def record_response(
        self, step: Step, before: Message | None, body: Container, response: Container
    ) -> None:
        """
        Record a member's response, and add an assignment that arrived earlier.

        Args:
            step: The captured request.
            before: Its captured response.
            body: The body of the sent request.
            response: The body of the target's response.
        """
        captured = step.captured
        name = captured.api
        if name not in _KEEPS_ALIVE:
            return
        key = body.group_id, response.get("member_id") or body.member_id
        previous = self._members.get(key)
        if name == "JoinGroup":
            self._joining[body.group_id] -= 1
        if response.error_code not in _STILL_MEMBER:
            self._forget(key)
            return
        if name == "JoinGroup" and not response.error_code:
            member = _classic(captured, body, response)
        elif name in _BY_EPOCH and response.member_epoch > 0:
            member = _by_epoch(captured, key, response)
            member.pending_assignment = _deliver_assignment(previous, step, before, response)
        elif previous is not None:
            member = previous
        else:
            return
        member.connection, member.last_request_ns = captured.connection, captured.request_time_ns
        self._forget(key)
        self._members[key] = member
        self._schedule(member)

    def add_member(self, captured: CapturedExchange, body: Container, response: Container) -> None:
        """
        Record a member that joined without a captured join.

        Args:
            captured: A captured request of the member.
            body: The body of its join request.
            response: The body of the response to that.
        """
        if captured.api in _BY_EPOCH:
            member = _by_epoch(captured, (body.group_id, response.member_id), response)
            member.pending_assignment = response.assignment
        else:
            member = _classic(captured, body, response)
        member.last_request_ns = captured.request_time_ns
        self._forget(member.key)
        self._members[member.key] = member
        self._schedule(member)

    @contextmanager
    def while_joining(self, group: str) -> Iterator[None]:
        """Send frequent heartbeats for a group's members: they may have to join again too."""
        self._joining[group] += 1
        self._hasten(group)
        try:
            yield
        finally:
            self._joining[group] -= 1

    def send_now(self, groups: Collection[str]) -> None:
        """Send heartbeats at once for all group members without a request in flight."""
        for member in list(self._members.values()):
            if member.body["group_id"] in groups and member.timer is not None:
                member.timer.cancel()
                self._send_or_expire(member)

    def _hasten(self, group: str) -> None:
        """Bring forward the heartbeats of a group's members: they may have to join again too."""
        for member in self._members.values():
            if member.body["group_id"] == group and member.timer is not None:
                member.timer.cancel()
                self._schedule(member)

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

    def _schedule(self, member: _Member) -> None:
        is_joined = self._joining[member.body["group_id"]] > 0 and member.api not in _BY_EPOCH
        every_s = min(member.interval_s, _JOINING_INTERVAL_S) if is_joined else member.interval_s
        member.timer = self._loop.call_later(every_s, self._send_or_expire, member)

    def _send_or_expire(self, member: _Member) -> None:
        now_ns = max(self._reached_ns, self._next_ns.get(member.connection, 0))
        if now_ns - member.last_request_ns >= member.session_timeout_ns:
            self._forget(member.key)
            return
        task = self._loop.create_task(self._send(member))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _send(self, member: _Member) -> None:
        group, timer = member.body["group_id"], member.timer
        error = 0
        try:
            node = await self._cluster.coordinator(CoordinatorType.GROUP, group)
            response = await self._cluster.request(
                node, member.api, member.body, client_id=member.client_id
            )
            error = response.error_code
            if member.api in _BY_EPOCH and not error:
                self._learn(member, response)
        except ReplayError:
            pass  # the player of this member gets the same error for its requests
        if error in MISROUTED:
            self._cluster.forget_coordinator(CoordinatorType.GROUP, group)
        if self._members.get(member.key) is not member or member.timer is not timer:
            return  # the member has sent another request meanwhile
        if error in _STILL_MEMBER:
            self._schedule(member)
        else:
            self._forget(member.key)
        if error == REBALANCES and not await self._on_rebalance(*self._captured(member)):
            self._forget(member.key)

    def _captured(self, member: _Member) -> tuple[str, str]:
        """Return the captured names of the member and its group."""
        group = self._ids.names.unprefixed(member.body["group_id"])
        return group, self._ids.members.captured(group, member.body["member_id"])

    def _learn(self, member: _Member, response: Container) -> None:
        """Learn a new assignment and a new epoch."""
        if response.assignment is not None:
            member.pending_assignment = response.assignment
        self.learn_epoch(member.body, response)
        member.body["member_epoch"] = max(response.member_epoch, member.body["member_epoch"])

    def learn_epoch(self, body: Mapping[str, Any], response: Container) -> None:
        """
        Learn a new epoch that has no counterpart in the capture: requests go on with it.

        Args:
            body: The body of a sent heartbeat that the capture lacks, or that is sent again.
            response: The response to it.
        """
        group = self._ids.names.unprefixed(body["group_id"])
        members, before = self._ids.members, body["member_epoch"]
        title = members.captured(group, body["member_id"])
        if response.member_epoch > before:
            generation = members.captured_generation(group, title, before)
            members.learn_generation(group, title, generation, response.member_epoch)


def _deliver_assignment(
    previous: _Member | None, step: Step, before: Message | None, response: Container
) -> Container | None:
    """Add the pending assignment to a response, as in the capture; return the remainder."""
    if step.is_before_assignment and has_partitions(response):
        return response.assignment  # the capture shows it later
    if previous is None or previous.pending_assignment is None or response.assignment is not None:
        return None
    is_shown = before is not None and before.body is not None and before.body.assignment is not None
    if step.is_before_assignment or not is_shown:
        return previous.pending_assignment
    response.assignment = previous.pending_assignment
    return None


def _classic(captured: CapturedExchange, body: Container, response: Container) -> _Member:
    fields = {
        "group_id": body.group_id,
        "generation_id": response.generation_id,
        "member_id": response.member_id,
        "group_instance_id": body.get("group_instance_id"),
    }
    session_ms = body.session_timeout_ms
    interval_s = session_ms / 1000 / _HEARTBEATS_PER_SESSION
    return _Member(
        captured.connection,
        captured.client_id,
        "Heartbeat",
        fields,
        interval_s,
        session_ms * 1_000_000,
        0,
    )


def _by_epoch(captured: CapturedExchange, key: tuple[str, str], response: Container) -> _Member:
    found = api(KEYS[captured.api])
    assert found is not None
    schema = found.request
    fields = {field.name: field.zero(schema.versions.high) for field in schema.fields}
    fields |= {"group_id": key[0], "member_id": key[1], "member_epoch": response.member_epoch}
    interval_ms = response.heartbeat_interval_ms
    interval_s = interval_ms / 1000 * _SILENCE_INTERVALS
    session_timeout_ns = interval_ms * 1_000_000 * _SESSION_INTERVALS
    return _Member(
        captured.connection,
        captured.client_id,
        captured.api,
        fields,
        interval_s,
        session_timeout_ns,
        0,
    )
