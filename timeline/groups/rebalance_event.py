"""Event and text of a classic rebalance."""

from __future__ import annotations

from timeline.events.words import counted, duration, listed, partitions_text
from timeline.groups.classic_state import Assignment, Generation
from timeline.groups.rebalance_cause import Cause

SHORT_WAIT_NS = 20_000_000
"""Shorter waits are omitted."""


def rebalance_text(before: Generation | None, generation: Generation, cause: Cause) -> str:
    """Describe the transition from the previous generation."""
    number = f"generation {generation.number}"
    if before is not None:
        number = f"generation {before.number} to {generation.number}"
    took = duration(generation.end_ns - cause.time_ns)
    parts = [
        f"{number}: {cause.text}; {counted(len(generation.members), 'member')} after {took}"
        f"{_states(generation, cause)}",
        *_waits(before, generation, cause),
        *_pause(before, generation),
    ]
    if not generation.is_stable:
        missing = sorted(generation.members - generation.syncs.keys())
        names = listed(generation.name(each) for each in missing)
        parts.append(f"ended without an assignment for {names}")
    changes = _changes(before, generation)
    if changes:
        parts.append(f"assigned: {changes}")
    return "; ".join(parts)


def _states(generation: Generation, cause: Cause) -> str:
    """Describe the time in each state of the coordinator until Stable."""
    if not generation.syncs:
        return ""
    joined_ns = max(generation.joined_ns, cause.time_ns)
    preparing, completing = joined_ns - cause.time_ns, max(0, generation.end_ns - joined_ns)
    return (
        f" (PreparingRebalance {duration(preparing)}, CompletingRebalance {duration(completing)})"
    )


def _waits(before: Generation | None, generation: Generation, cause: Cause) -> list[str]:
    """Name the members that delayed the rebalance, and those that waited."""
    joins = sorted(generation.joins.values(), key=lambda join: join.request_ns)
    waits = []
    waited_ns = joins[-1].request_ns - joins[0].request_ns
    if waited_ns >= SHORT_WAIT_NS:
        waits.append(f"{joins[0].name} waited {duration(waited_ns)} for {joins[-1].name} to join")
    rest_ns = generation.joined_ns - joins[-1].request_ns
    gone = _removed(before, generation)
    if rest_ns >= SHORT_WAIT_NS and gone and cause.word != "session timeout":
        names = listed(gone)
        waits.append(f"the coordinator waited {duration(rest_ns)} for {names}, then removed them")
    elif rest_ns >= SHORT_WAIT_NS and before is None:
        waits.append(f"the coordinator waited {duration(rest_ns)} for more members")
    return waits


def _removed(before: Generation | None, generation: Generation) -> list[str]:
    """Return the members that neither left nor joined again."""
    if before is None or generation.member_ids is None:
        return []
    returned = {join.instance_id for join in generation.joins.values() if join.instance_id}
    left = {each.member_id for each in before.leaves}
    return [
        before.name(each)
        for each in sorted(before.members - generation.members - left)
        if each not in before.joins or before.joins[each].instance_id not in returned
    ]


def _pause(before: Generation | None, generation: Generation) -> list[str]:
    """Describe the pause of consumption: eager members revoke all partitions, then join."""
    if before is None or generation.protocol_type not in ("", "consumer"):
        return []
    if "cooperative" in generation.protocol:
        return ["members consumed their other partitions meanwhile (cooperative)"]
    pauses = [
        (sync.response_ns - generation.joins[member_id].request_ns, member_id)
        for member_id, sync in generation.syncs.items()
        if member_id in generation.joins and before.assignments.get(member_id)
    ]
    if not pauses:
        return []
    longest_ns, member_id = max(pauses)
    return [f"consumption paused up to {duration(longest_ns)} ({generation.name(member_id)})"]


def _changes(before: Generation | None, generation: Generation) -> str:
    """Describe the assignment of each member before and after."""
    old = {} if before is None else _by_name(before)
    new = _by_name(generation)
    texts = []
    for name in sorted(old.keys() | new.keys()):
        was, now = _text(old.get(name)), _text(new.get(name))
        if name not in old:
            texts.append(f"{name} {now}")
        elif name not in new:
            texts.append(f"{name} {was} -> gone")
        else:
            texts.append(f"{name} {now}" if was == now else f"{name} {was} -> {now}")
    return listed(texts)


def _by_name(generation: Generation) -> dict[str, Assignment | None]:
    return {
        generation.name(member_id): assignment
        for member_id, assignment in generation.assignments.items()
        if member_id in generation.members and assignment is not None
    }


def _text(assignment: Assignment | None) -> str:
    return partitions_text(assignment or {})
