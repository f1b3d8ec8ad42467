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
from timeline.events.words import client_name, duration
from timeline.groups.classic_state import Generation, Member

RETURNS = {"rejoined", "leader rejoined", "static member returned", "unknown"}
TIMEOUTS = {"session timeout", "rebalance timeout"}

RETURN_NS = 60 * 10**9
"""Members come back to a coordinator within this time, or within their session timeout."""

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
        cause = Cause(begin_ns, "unknown", "no captured request explains it", signal, False)
    else:
        certain = before.is_complete and generation.member_ids is not None
        cause = causes[0]
        cause = cause._replace(evidence=(*cause.evidence, *signal), certain=certain)
    return _after_absence(cause, before, generation)


def _after_absence(cause: Cause, before: Generation, generation: Generation) -> Cause:
    """Return the cause; the coordinator if it was away, and members came back to it."""
    absence = before.absence
    if absence is None or cause.time_ns < absence.time_ns:
        return cause
    away = f"after the coordinator was away for {duration(absence.duration_ns)}"
    timeouts_ms = [each.session_timeout_ms for each in before.joins.values()]
    limit_ns = max([RETURN_NS, *(each * 1_000_000 for each in timeouts_ms)])
    is_late = cause.time_ns - absence.end_ns > limit_ns
    is_return = cause.word in RETURNS or (
        cause.word == "joined" and _is_back(cause, before, generation)
    )
    if is_late or not is_return:
        return cause._replace(text=f"{cause.text}, {away}") if cause.word in TIMEOUTS else cause
    return cause._replace(
        word=absence.word,
        text=f"{cause.text}, {away}",
        evidence=(*cause.evidence, *absence.evidence),
        certain=cause.certain and absence.is_proven,
    )


def _is_back(cause: Cause, before: Generation, generation: Generation) -> bool:
    """Return whether a client that joined had a member that is gone."""
    clients = {client_name(each.client_id, each.client) for each in cause.evidence[:1]}
    gone = before.members - generation.members - {each.member_id for each in before.leaves}
    return any(before.joins[each].client in clients for each in gone if each in before.joins)


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
    loaded_ns = 0 if before.absence is None else before.absence.end_ns
    start_ns = max(member.active_ns, loaded_ns)
    yield Cause(_expiry_ns(start_ns, timeout_ms), "session timeout", text, proof)


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
