"""
Cause of a classic rebalance: the earliest possible trigger at the coordinator.

Source: Kafka, GroupCoordinator.scala (until 3.x) and GroupMetadataManager.java (4.x), with the log
    message "Preparing to rebalance group ... (reason: ...)".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from dissector.protocol.embedded.membership.group_members import read_member
from timeline.events.event import Evidence
from timeline.groups.classic_state import Generation, Member

TIMER_TOLERANCE_NS = 200_000_000
"""Tolerance for timers of the coordinator that seem to expire too early."""


class Cause(NamedTuple):
    """
    Cause of a rebalance.

    Attributes:
        time_ns: Time of the trigger.
        word: Cause for the event.
        text: Cause for the text.
        evidence: Exchanges that show the cause.
        certain: Whether the evidence proves it.
    """

    time_ns: int
    word: str
    text: str
    evidence: tuple[Evidence, ...]
    certain: bool = True


def find_cause(before: Generation | None, generation: Generation) -> Cause:
    """Return the cause of a generation."""
    first = min(generation.joins.values(), key=lambda join: join.request_ns)
    if before is None:
        if generation.number == 1:
            text = f"{first.name} joined the empty group{_reason(first.reason)}"
            proof = (first.evidence,)
            return Cause(first.request_ns, "joined", text, proof, generation.is_complete)
        text = "the generation before it is not in the capture"
        return Cause(first.request_ns, "unknown", text, (), certain=False)
    signals = _signals(before)
    causes = sorted(_candidates(before, generation), key=lambda cause: cause.time_ns)
    effect_ns = min([generation.joined_ns, *(time_ns for time_ns, _ in signals)])
    signal = tuple(each for _, each in signals[:1])
    if not causes or causes[0].time_ns > effect_ns:
        begin_ns = min(effect_ns, first.request_ns)
        return Cause(begin_ns, "unknown", "no captured request explains it", signal, False)
    certain = before.is_complete and generation.member_ids is not None
    return causes[0]._replace(evidence=(*causes[0].evidence, *signal), certain=certain)


def _signals(before: Generation) -> list[tuple[int, Evidence]]:
    """Return rejoin signals in time order."""
    found = [
        (member.signal_ns, member.signal_evidence)
        for member in before.joins.values()
        if member.signal_ns is not None and member.signal_evidence is not None
    ]
    return sorted(found, key=lambda each: each[0])


def _candidates(before: Generation, generation: Generation) -> Iterator[Cause]:
    """Yield all possible triggers of the rebalance."""
    for leave in before.leaves:
        if leave.time_ns <= generation.joined_ns:
            text = f"{leave.name} left{_reason(leave.reason)}"
            yield Cause(leave.time_ns, leave_word(leave.reason), text, (leave.evidence,))
    for join in generation.joins.values():
        yield from _join_causes(before, join)
    returned = {join.instance_id for join in generation.joins.values() if join.instance_id}
    gone = before.members - generation.members - {each.member_id for each in before.leaves}
    for member_id in gone:
        member = before.joins.get(member_id)
        if member is not None and member.has_joined and member.instance_id not in returned:
            yield from _timeout_causes(before, member)


def _join_causes(before: Generation, join: Member) -> Iterator[Cause]:
    """Yield the rebalances that a JoinGroup may have triggered."""
    word, text = _join_word(before, join)
    if word:
        yield Cause(join.request_ns, word, f"{text}{_reason(join.reason)}", (join.evidence,))


def _join_word(before: Generation, join: Member) -> tuple[str, str]:
    """Return the cause in a JoinGroup, for event and text; empty for reactions to a rebalance."""
    known = before.joins.get(join.member_id)
    if join.member_id not in before.members:
        static_ids = {each.instance_id for each in before.joins.values() if each.instance_id}
        if join.instance_id in static_ids:
            return "static member returned", f"static member {join.name} came back"
        return "joined", f"{join.name} joined"
    if known is None or (known.signal_ns is not None and known.signal_ns <= join.request_ns):
        return "", ""
    changed = _changed(known, join)
    if join.member_id == before.leader:
        # The coordinator rebalances for each JoinGroup of the leader, regardless of its contents.
        return "leader rejoined", f"leader {join.name} rejoined{changed and f', {changed}'}"
    if changed:
        return changed, f"{join.name} rejoined, {changed}"
    return "rejoined", f"{join.name} rejoined"


def _timeout_causes(before: Generation, member: Member) -> Iterator[Cause]:
    """Yield timeouts by which the coordinator may have removed a silent member."""
    proof = tuple(each for each in (member.evidence, member.active_evidence) if each is not None)
    if member.member_id not in before.syncs and before.syncs:
        timeout_ms = member.rebalance_timeout_ms
        text = f"{member.name} sent no SyncGroup within its rebalance timeout of {timeout_ms} ms"
        yield Cause(_expiry_ns(before.joined_ns, timeout_ms), "rebalance timeout", text, proof)
    timeout_ms = member.session_timeout_ms
    text = f"{member.name} was silent for its session timeout of {timeout_ms} ms"
    yield Cause(_expiry_ns(member.active_ns, timeout_ms), "session timeout", text, proof)


def _expiry_ns(start_ns: int, timeout_ms: int) -> int:
    return start_ns + timeout_ms * 1_000_000 - TIMER_TOLERANCE_NS


def _changed(before: Member, join: Member) -> str:
    """Return the changes of a member's metadata; empty without changes, or if unknown."""
    if before.protocols == join.protocols or not before.has_joined:
        return ""
    topics = [_subscribed_topics(each) for each in (before, join)]
    return "subscription changed" if topics[0] != topics[1] else "metadata changed"


def _subscribed_topics(join: Member) -> set[str]:
    topics: set[str] = set()
    for name, metadata in join.protocols.items():
        found = read_member("metadata", metadata, "metadata", "consumer", name)
        if found is not None and found.value is not None:
            topics.update(found.value.get("topics") or ())
    return topics


def leave_word(reason: str) -> str:
    """Return the cause for a departure; clients leave after max.poll.interval.ms."""
    lower = reason.lower()
    return "poll timeout" if "poll timeout" in lower or "poll interval" in lower else "left"


def _reason(reason: str) -> str:
    return f" ({reason})" if reason else ""
