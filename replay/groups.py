"""
Classic groups: who leads them on the target, and what their leader assigns.

Source: KIP-62, KIP-394; Kafka, ClassicGroup.java.
"""

from __future__ import annotations

from construct import Container

from dissector.protocol.messages import Message
from replay.outcome import Change
from replay.plan import Plan
from replay.roles import Role
from replay.step import Captured
from replay.world import World


class Groups:
    """The groups of a pass, by their captured names."""

    def __init__(self, plan: Plan, world: World) -> None:
        self._plan = plan
        self._world = world
        self._leaders: dict[str, str] = {}

    def join(self, message: Message, answer: Container) -> None:
        """Note who leads a group, as an answer to a JoinGroup tells."""
        if message.body is not None and not answer.error_code:
            group = message.body.group_id
            self._leaders[group] = self._world.members.captured(group, answer.leader)

    def awaits_others(self, asked: Captured, answer: Container) -> bool:
        """
        Tell whether others are still to join, whom the capture shows in the same generation.

        Whether members come together depends on how long the coordinator waits for more; who has
        come before them joins again.

        Args:
            asked: The captured request.
            answer: The body that the target answered.
        """
        if asked.api != "JoinGroup" or answer.error_code or answer.leader != answer.member_id:
            return False
        told, body = asked.answered(), asked.asked().body
        if told is None or told.body is None or body is None:
            return False
        size = self._plan.sizes.get((body.group_id, told.body.generation_id), 0)
        return len(answer.members) < size

    def assign(self, message: Message) -> list[Change]:
        """
        Have the member that leads the group of the target send what the captured leader assigned.

        Args:
            message: A captured SyncGroup, whose body may be changed.
        """
        body = message.body
        assert body is not None
        leader = self._leaders.get(body.group_id)
        if leader is None:
            return []
        before = body.assignments
        number = self._plan.assignments.get((body.group_id, body.generation_id))
        if body.member_id != leader:
            body.assignments = []
        elif not before and number is not None:
            told = self._plan.step(number).captured.asked().body
            body.assignments = told.assignments if told is not None else []
        if len(before) == len(body.assignments):
            return []
        why = "the group has another leader"
        return [Change("assignments", Role.EMBEDDED, len(before), len(body.assignments), why)]
