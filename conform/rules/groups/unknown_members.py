"""Rules G10 and G11: requests of non-members, and the protocol of a generation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from conform.evidence.bounded_memory import BoundedDict
from conform.evidence.observation import Observation
from conform.evidence.reporter import Reporter
from conform.registry.rank import Severity
from conform.registry.rule import Side, rule
from conform.rules.groups.group_key import MAX_GROUPS, GroupKey, group_key_of

_MEMBER_APIS = ("Heartbeat", "SyncGroup", "OffsetCommit", "LeaveGroup", "TxnOffsetCommit")


@dataclass(slots=True)
class _Generation:
    """Members of a generation from the leader's JoinGroup response, and its time."""

    number: int
    members: frozenset[str]
    protocol: str | None
    response_ns: int


class _Members(BoundedDict[GroupKey, _Generation]):
    """
    The newest generation of each group with a captured JoinGroup response of its leader.

    Attributes:
        left: Members that left, and the time of the response.
        static: Groups with static members, which rejoin with other ids.
    """

    def __init__(self) -> None:
        super().__init__(MAX_GROUPS)
        self.left: BoundedDict[tuple[GroupKey, str], int] = BoundedDict(10 * MAX_GROUPS)
        self.static: BoundedDict[GroupKey, None] = BoundedDict(MAX_GROUPS)


@rule(
    "G10",
    "Request of a non-member accepted",
    Severity.ERROR,
    source="GroupMetadataManager.java (classicGroupHeartbeat, classicGroupSync), ClassicGroup.java "
    "(validateOffsetCommit): UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION",
    asks="Heartbeat, SyncGroup and commits succeed only for a member of the newest generation, as "
    "listed to its leader, that did not leave, and not in a future generation.",
    example="Heartbeat of member 'x' succeeds in generation 4, whose members are 'a' and 'b'",
    apis=("JoinGroup", *_MEMBER_APIS),
)
def check_members_only(observation: Observation, reporter: Reporter) -> None:
    """Record members of generations; report successful requests of others."""
    request, response = observation.request_body, observation.response_body
    request_ns, response_ns = (
        observation.exchange.request_time_ns,
        observation.exchange.response_time_ns,
    )
    if request is None or response is None or request_ns is None or response_ns is None:
        reporter.count_unjudged(observation.unreadable_reason())
        return
    state = observation.capture_state.state(_Members)
    group = group_key_of(observation, request.group_id)
    if observation.exchange.api == "JoinGroup":
        _record_members(observation, state, group, request, response, response_ns)
        return
    if observation.exchange.api == "LeaveGroup":
        _record_departures(state, group, request, response, response_ns)
        return
    newest = state.get(group)
    generation = request.get("generation_id", request.get("generation_id_or_member_epoch", -1))
    member = request.get("member_id", "")
    if newest is None or newest.response_ns >= request_ns or group in state.static:
        reporter.count_unjudged("the members of the group are not in the capture")
        return
    if generation < 0 or request.get("group_instance_id") is not None or not is_success(response):
        return
    reporter.count_judged()
    found = ""
    if generation > newest.number and not observation.capture_state.incomplete_reason:
        found = f"generation {generation} is accepted, the newest is {newest.number}"
    elif generation == newest.number and member not in newest.members:
        found = f"{member!r} is accepted, which is not one of the {len(newest.members)} members"
    elif generation == newest.number and state.left.get((group, member), request_ns) < request_ns:
        found = f"{member!r} is accepted, which left the group"
    if found:
        reporter.report_violation(Side.BROKER, found)


def _record_members(
    observation: Observation,
    state: _Members,
    group: GroupKey,
    request: Any,
    response: Any,
    response_ns: int,
) -> None:
    """Record the members in a leader's response; a member that rejoins has not left."""
    if request.get("group_instance_id") is not None:
        state.static[group] = None
    if response.error_code or response.member_id != response.leader:
        if not response.error_code:
            newest = state.get(group)
            if newest is not None and response.generation_id > newest.number:
                del state[group]  # the response to its leader is still to come
        return
    if any(each.get("group_instance_id") is not None for each in response.members):
        state.static[group] = None
    members = frozenset(each.member_id for each in response.members)
    newest = state.get(group)
    if newest is None or response.generation_id >= newest.number:
        state[group] = _Generation(
            response.generation_id, members, response.protocol_name, response_ns
        )
    for member in members:
        state.left.pop((group, member), None)


def _record_departures(
    state: _Members, group: GroupKey, request: Any, response: Any, response_ns: int
) -> None:
    """Record members that left."""
    if response.error_code:
        return
    left = [request.member_id] if "member_id" in request else []
    left += [each.member_id for each in response.get("members") or () if not each.error_code]
    for member in left:
        state.left[group, member] = response_ns


def is_success(response: Any) -> bool:
    """Return whether a response reports success, at least in part."""
    if "error_code" in response:
        return not response.error_code
    return any(not each.error_code for topic in response.topics or () for each in topic.partitions)


class _Protocols(BoundedDict[tuple[GroupKey, int], "tuple[str | None, str | None]"]):
    """Protocol type and name of each generation, from JoinGroup responses."""

    def __init__(self) -> None:
        super().__init__(MAX_GROUPS)


@rule(
    "G11",
    "SyncGroup with another protocol than its generation",
    Severity.ERROR,
    source="KIP-559; GroupMetadataManager.classicGroupSync: INCONSISTENT_GROUP_PROTOCOL",
    asks="From SyncGroup v5 on, request and response contain the type and the name of the "
    "protocol from the JoinGroup response of the generation; brokers reject others.",
    example="protocol_name 'sticky', while JoinGroup returned 'range'",
    apis=("JoinGroup", "SyncGroup"),
)
def check_protocol(observation: Observation, reporter: Reporter) -> None:
    """Compare the protocols of SyncGroup and JoinGroup."""
    request, response = observation.request_body, observation.response_body
    if request is None or response is None:
        reporter.count_unjudged(observation.unreadable_reason())
        return
    protocols = observation.capture_state.state(_Protocols)
    group = group_key_of(observation, request.group_id)
    if observation.exchange.api == "JoinGroup":
        if not response.error_code:
            protocol_type = response.get("protocol_type") or request.protocol_type
            protocols[group, response.generation_id] = protocol_type, response.protocol_name
        return
    expected = protocols.get((group, request.generation_id))
    if expected is None or response.error_code or "protocol_name" not in request:
        return
    reporter.count_judged()
    for side, body in ((Side.CLIENT, request), (Side.BROKER, response)):
        returned = body.protocol_type, body.protocol_name
        for name, value, expected_value in zip(("type", "name"), returned, expected, strict=True):
            if value is not None and value != expected_value:
                found = f"protocol {name} {value!r}, JoinGroup returned {expected_value!r}"
                reporter.report_violation(side, found, path=f"protocol_{name}")
