"""Messages of classic groups: members, departures, assignments, errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dissector.protocol.embedded.membership.group_members import read_member
from dissector.protocol.error_codes import error_name
from timeline.events.observed_exchange import ObservedExchange
from timeline.groups.classic_state import Assignment, Generation, Member
from timeline.groups.commit_errors import commit_errors

OFFSET_COMMIT = 8
GROUP_KEYS = 0
"""Type of the keys of FindCoordinator that are groups."""


def error_of(observed: ObservedExchange) -> str:
    """Return the error of a response; for OffsetCommit the first error of a partition."""
    if observed.api_key != OFFSET_COMMIT:
        return observed.error
    return next(iter(commit_errors(observed)), "")


def joined_member(observed: ObservedExchange) -> Member:
    """Return the member of a successful JoinGroup."""
    request, response = observed.request, observed.response
    timeout_ms = request.get("rebalance_timeout_ms", -1)
    return Member(
        response.member_id,
        request.get("group_instance_id"),
        observed.time_ns,
        observed.end_ns,
        observed.evidence,
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=timeout_ms if timeout_ms > 0 else request.session_timeout_ms,
        protocols={each.name: bytes(each.metadata or b"") for each in request.protocols or ()},
        reason=request.get("reason") or "",
        active_ns=observed.end_ns,
        active_evidence=observed.evidence,
    )


def joining_member(observed: ObservedExchange) -> Member:
    """Return a member with an uncaptured JoinGroup."""
    request = observed.request
    return Member(
        request.member_id,
        request.get("group_instance_id"),
        observed.time_ns,
        observed.end_ns,
        observed.evidence,
    )


def static_member(generation: Generation, instance_id: str | None) -> Member | None:
    """Return the member with an instance id."""
    members = generation.joins.values()
    return next((each for each in members if instance_id and each.instance_id == instance_id), None)


def leaving_members(observed: ObservedExchange) -> Iterator[tuple[str, str | None, str]]:
    """Yield id, instance id and reason of each member in a LeaveGroup."""
    request, response = observed.request, observed.response
    if "members" not in request:
        yield request.member_id, None, ""
        return
    results = response.get("members") or ()
    errors = [each.error_code for each in results]
    for at, each in enumerate(request.members or ()):
        if at < len(errors) and errors[at]:
            continue
        yield each.member_id, each.group_instance_id, each.get("reason") or ""


def assignment_of(data: bytes | None, protocol_type: str | None) -> Assignment | None:
    """Return the partitions of an assignment; None for unknown protocols."""
    if not data:
        return {}
    found = read_member("assignment", bytes(data), "assignment", protocol_type)
    value: Any = None if found is None else found.value
    if value is None or "assigned_partitions" not in value:
        return None
    return {each.topic: tuple(each.partitions) for each in value.assigned_partitions or ()}


def sought_groups(observed: ObservedExchange) -> Iterator[tuple[str, str]]:
    """Yield each group in a FindCoordinator, with the error for it."""
    request, response = observed.request, observed.response
    if request.get("key_type", GROUP_KEYS) != GROUP_KEYS:
        return
    if request.get("coordinator_keys") is None:
        yield request.key, observed.error
        return
    for each in response.coordinators or ():
        yield each.key, error_name(each.error_code) if each.error_code else ""
