"""A coordinator of classic groups, for scripted brokers."""

from __future__ import annotations

import asyncio
from typing import Any

from dissector.protocol.messages import Message

ILLEGAL_GENERATION, REBALANCES = 22, 27

_Answer = dict[str, Any]


class Coordinator:
    """
    Coordinates one group as Kafka does, without a rebalance delay.

    A generation is complete when all members have joined it. A repeated join has the same
    response; a leader that has assigned begins a new generation by its join. A sync is answered
    when the leader has assigned, or when the group rebalances. Member ids are the client ids.

    Attributes:
        generation: Id of the newest.
        members: In the order of their joins; the first is the leader.
        parts: The newest assignment.
        is_assigned: Whether the leader has assigned in this generation.

    Source: KIP-62; Kafka, GroupMetadataManager.java (classicGroupJoin, classicGroupSync).
    """

    def __init__(self) -> None:
        self.generation = 0
        self.members: list[str] = []
        self.parts: dict[str, bytes] = {}
        self.is_assigned = False
        self._is_open = True
        self._parked = asyncio.Condition()
        self._joining: dict[str, asyncio.Future[None]] = {}
        self._waiting: dict[str, asyncio.Future[_Answer]] = {}

    async def join(self, message: Message) -> _Answer:
        """Answer when the generation is complete."""
        name = message.client_id or ""
        is_new, is_leader = name not in self.members, self.members[:1] == [name]
        if is_new:
            self.members.append(name)
        if is_new or (is_leader and self.is_assigned):
            self.rebalance()
        if self._is_open:
            joining = self._joining[name] = asyncio.get_running_loop().create_future()
            self._complete()
            await joining
        members = [{"member_id": each, "metadata": b""} for each in self.members]
        leader = self.members[0]
        found = {"generation_id": self.generation, "member_id": name, "leader": leader}
        found |= {"protocol_name": "range", "error_code": 0}
        return found | {"members": members if name == leader else []}

    async def sync(self, message: Message) -> _Answer:
        """Answer when the leader has assigned, or when another generation begins."""
        name, body = message.client_id or "", message.body
        assert body is not None
        if error := self._error(body.generation_id):
            return {"error_code": error}
        if name == self.members[0]:
            self.is_assigned = True
            self.parts = {each.member_id: each.assignment for each in body.assignments}
            for member, waiting in self._waiting.items():
                waiting.set_result(self._part(member))
            self._waiting.clear()
            return self._part(name)
        if self.is_assigned:
            return self._part(name)
        waiting = self._waiting[name] = asyncio.get_running_loop().create_future()
        async with self._parked:
            self._parked.notify_all()
        return await waiting

    def beat(self, message: Message) -> _Answer:
        """Answer with the error of the group's state, or none."""
        assert message.body is not None
        return {"error_code": self._error(message.body.generation_id)}

    def rebalance(self) -> None:
        """Have all members join again."""
        self._is_open, self.is_assigned = True, False
        for waiting in self._waiting.values():
            waiting.set_result({"error_code": REBALANCES})
        self._waiting.clear()

    async def until_parked(self) -> None:
        """Wait until a sync is waiting for the leader."""
        async with self._parked:
            await self._parked.wait_for(lambda: self._waiting)

    def _part(self, name: str) -> _Answer:
        return {"error_code": 0, "assignment": self.parts.get(name, b"")}

    def _error(self, generation: int) -> int:
        if generation != self.generation:
            return ILLEGAL_GENERATION
        return REBALANCES if self._is_open else 0

    def _complete(self) -> None:
        if len(self._joining) < len(self.members):
            return
        self.generation += 1
        self._is_open = False
        for waiting in self._joining.values():
            waiting.set_result(None)
        self._joining.clear()
