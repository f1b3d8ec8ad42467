"""
Answers to members of consumer (KIP-848), share (KIP-932) and streams (KIP-1071) groups.

A joining client plays a captured member, and gets the assignments of that member in order. An
assignment is withheld until every join and leave before it in the capture has been repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass

from construct import Container

from serve.answers.client_request import ClientRequest, Unmatched
from serve.answers.served_state import ServedState
from serve.matching.exchange_keys import beat_key, first_beat_keys

_SHARES = "ShareGroupHeartbeat"
_ASSIGNMENTS = ("assignment", "active_tasks", "standby_tasks", "warmup_tasks")

Unserved = Callable[[ClientRequest, str], None]
"""Notes what a client lacks to get records; empty once it lacks nothing any more."""

_GroupKey = tuple[str, str]
"""API and group id."""


@dataclass(slots=True)
class PlayedMember:
    """
    A captured member played by a client.

    Attributes:
        captured_id: Member id in the capture.
        last: The newest response to this member.
        is_assigned: Whether it has got an assignment.
        is_withheld: Whether its next captured answer waits for other members.
    """

    captured_id: str
    last: Container
    is_assigned: bool = False
    is_withheld: bool = False


class EpochGroups:
    """Answers heartbeats of groups with member epochs."""

    def __init__(self, state: ServedState, unserved: Unserved) -> None:
        self._state = state
        self._unserved = unserved
        self._members: dict[tuple[str, str, str], PlayedMember] = {}
        self._changes: dict[_GroupKey, list[tuple[int, int]]] = {}

    def played(self) -> dict[str, str]:
        """Return a map from live member ids to captured ones."""
        return {live: member.captured_id for (_, _, live), member in self._members.items()}

    async def heartbeat(self, request: ClientRequest) -> Container:
        """Return the next captured assignment, or an unchanged one."""
        answer = self._next_answer(request)
        member = self._members.get((request.api, request.body.group_id, request.body.member_id))
        if member is not None and not member.is_assigned:
            member.is_assigned = _has_partitions(answer)
            what = f"an assignment of group {request.body.group_id} without its other members"
            is_waiting = member.is_withheld and not member.is_assigned
            self._unserved(request, what if is_waiting else "")
        return answer

    def _next_answer(self, request: ClientRequest) -> Container:
        body, recording = request.body, self._state.recording
        api, group = request.api, body.group_id
        if body.member_epoch == 0 and (api, group, body.member_id) not in self._members:
            return self._join(request)
        member = self._members.get((api, group, body.member_id))
        if member is None:
            raise Unmatched(f"member {body.member_id!r} of group {group}")
        if body.member_epoch < 0:
            return self._leave(request, member)
        number = recording.index.next_unused(beat_key(api, group, member.captured_id))
        while number is not None and self._may_follow(api, group, member, number):
            recording.index.use(number)
            self._state.reach(number)
            answer = recording.response(number)
            if _is_news(answer, member.last):
                member.last = answer
                return self._adapted(answer, body.member_id)
            number = recording.index.next_unused(beat_key(api, group, member.captured_id))
        member.is_withheld = number is not None and recording.request(number).member_epoch >= 0
        return self._unchanged(member, body)

    def _join(self, request: ClientRequest) -> Container:
        body, recording = request.body, self._state.recording
        keys = first_beat_keys(request.api, body.group_id, request.client_id)
        answer = self._state.take_response(keys)
        if answer is None:
            raise Unmatched(f"a member of group {body.group_id}")
        captured_id = answer.get("member_id") or ""
        if not captured_id:
            number = recording.index.take(keys)
            captured_id = recording.request(number).member_id if number is not None else ""
        live_id = body.member_id or captured_id
        played = PlayedMember(captured_id, answer, _has_partitions(answer))
        self._members[request.api, body.group_id, live_id] = played
        return self._adapted(answer, live_id)

    def _leave(self, request: ClientRequest, member: PlayedMember) -> Container:
        body = request.body
        self._members.pop((request.api, body.group_id, body.member_id), None)
        recording = self._state.recording
        key = beat_key(request.api, body.group_id, member.captured_id)
        for number in recording.index.numbers(key):
            recording.index.use(number)
        return self._adapted(
            Container(member.last, member_epoch=body.member_epoch, assignment=None), body.member_id
        )

    def _may_follow(self, api: str, group: str, member: PlayedMember, number: int) -> bool:
        """Return whether clients have repeated all joins and leaves before a captured answer."""
        recording = self._state.recording
        request = recording.request(number)
        if request.member_epoch < 0:
            return False
        if api == _SHARES:
            return True  # members share partitions, so one needs no other (KIP-932)
        answered_ns = recording.spill.times_ns(number)[1] or recording.time_ns(number)
        return all(
            recording.index.is_used(other)
            for at_ns, other in self._comings(api, group)
            if at_ns < answered_ns
        )

    def _comings(self, api: str, group: str) -> list[tuple[int, int]]:
        """Return time and number of each captured heartbeat that joined or left the group."""
        found = self._changes.get((api, group))
        if found is None:
            recording = self._state.recording
            keys: list[Hashable] = [first_beat_keys(api, group, None)[-1], (api, "leaves", group)]
            numbers = [number for key in keys for number in recording.index.numbers(key)]
            found = self._changes[api, group] = sorted(
                (recording.time_ns(number), number) for number in numbers
            )
        return found

    def _unchanged(self, member: PlayedMember, body: Container) -> Container:
        answer = Container(member.last)
        answer.member_epoch = max(body.member_epoch, member.last.member_epoch)
        for name in _ASSIGNMENTS:
            if name in answer:
                answer[name] = None
        return self._adapted(answer, body.member_id)

    def _adapted(self, answer: Container, member_id: str) -> Container:
        if "member_id" in answer:
            answer = Container(answer, member_id=member_id)
        return answer


def _has_partitions(answer: Container) -> bool:
    """Return whether a response assigns any partition or task."""
    given = answer.get("assignment")
    return bool(given and given.topic_partitions) or any(map(answer.get, _ASSIGNMENTS[1:]))


def _is_news(answer: Container, last: Container) -> bool:
    """Return whether a response has an assignment, an error or a new epoch."""
    has_assignment = any(answer.get(name) is not None for name in _ASSIGNMENTS)
    return has_assignment or answer.error_code != 0 or answer.member_epoch != last.member_epoch
