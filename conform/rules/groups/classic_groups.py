"""Rules G01 to G03: joins and generations of classic group members."""

from __future__ import annotations

from dataclasses import dataclass

from conform.evidence.bounded_memory import BoundedDict
from conform.evidence.observation import Observation
from conform.evidence.reporter import Reporter
from conform.registry.rank import Severity
from conform.registry.rule import Side, rule
from conform.rules.groups.group_key import MAX_GROUPS, GroupKey, group_key_of

_MEMBER_ID_REQUIRED, _ILLEGAL_GENERATION = 79, 22
_FIRST_REQUIRING_ID = 4


class _AssignedIds(BoundedDict[str, str]):
    """Member ids assigned on this connection for the next JoinGroup, by group."""

    def __init__(self) -> None:
        super().__init__(MAX_GROUPS)


@rule(
    "G01",
    "Join without a member id accepted, or repeated with another id",
    Severity.WARNING,
    source="KIP-394; GroupMetadataManager.classicGroupJoinToClassicGroup; "
    "JoinGroupRequest.requiresKnownMemberId",
    asks="From JoinGroup v4 on, an empty member id that is not a static member's is answered with "
    "MEMBER_ID_REQUIRED (79) and an id, and the client joins again with that id.",
    example="JoinGroup v5 with an empty member id is answered with a generation",
    apis=("JoinGroup",),
)
def check_member_id_first(observation: Observation, reporter: Reporter) -> None:
    """Check joins with an empty member id, and the joins that follow MEMBER_ID_REQUIRED."""
    request, response = observation.request_body, observation.response_body
    if request is None or response is None:
        reporter.count_unjudged(observation.unreadable_reason())
        return
    is_static = request.get("group_instance_id") is not None
    if (observation.version or 0) < _FIRST_REQUIRING_ID or is_static:
        return
    assigned_ids = observation.connection.state(_AssignedIds)
    assigned_id = assigned_ids.pop(request.group_id, None)
    if assigned_id is not None:
        reporter.count_judged()
        if request.member_id != assigned_id:
            found = f"joins with {request.member_id!r}, not with the id that it was assigned"
            reporter.report_violation(Side.CLIENT, found, path="member_id")
    if response.error_code == _MEMBER_ID_REQUIRED:
        reporter.count_judged()
        assigned_ids[request.group_id] = response.member_id
        if not response.member_id:
            found = "MEMBER_ID_REQUIRED without a member id"
            reporter.report_violation(Side.BROKER, found, path="member_id", severity=Severity.ERROR)
    elif not request.member_id and not response.error_code:
        reporter.count_judged()
        reporter.report_violation(
            Side.BROKER, "a member without an id is accepted at once", path="member_id"
        )


@dataclass(slots=True)
class _Rebalance:
    """Leader and protocol in the first JoinGroup response of a generation."""

    leader: str
    protocol: str | None
    response_ns: int


class _Rebalances(BoundedDict[tuple[GroupKey, int], _Rebalance]):
    """First JoinGroup responses of the newest generations."""

    def __init__(self) -> None:
        super().__init__(MAX_GROUPS)


@rule(
    "G02",
    "JoinGroup response with a wrong leader, member list or protocol",
    Severity.ERROR,
    source="GroupMetadataManager.classicGroupJoin; JoinGroupResponse.json",
    asks="The leader gets all members, including itself, the other members get none; the protocol "
    "is one that the member named; leader and protocol are the same for all members that joined "
    "together.",
    example="protocol 'sticky' is answered to a member that named only 'range'",
    apis=("JoinGroup",),
)
def check_leader_and_protocol(observation: Observation, reporter: Reporter) -> None:
    """Check successful JoinGroup responses."""
    request, response = observation.request_body, observation.response_body
    if request is None or response is None:
        reporter.count_unjudged(observation.unreadable_reason())
        return
    if response.error_code:
        return
    reporter.count_judged()
    members = [each.member_id for each in response.members]
    if response.member_id == response.leader:
        if response.leader not in members:
            found = f"the leader gets {len(members)} members without itself"
            reporter.report_violation(Side.BROKER, found, path="members")
    elif members:
        found = f"a member that is not the leader gets {len(members)} members"
        reporter.report_violation(Side.BROKER, found, path="members")
    named = [each.name for each in request.protocols]
    if response.protocol_name not in named:
        found = f"protocol {response.protocol_name!r}, the member named {', '.join(named)!r}"
        reporter.report_violation(Side.BROKER, found, path="protocol_name")
    _compare_with_generation(observation, reporter)


def _compare_with_generation(observation: Observation, reporter: Reporter) -> None:
    """Compare a response with the first of its generation, if the requests overlapped in time."""
    request, response = observation.request_body, observation.response_body
    request_ns, response_ns = (
        observation.exchange.request_time_ns,
        observation.exchange.response_time_ns,
    )
    if request is None or response is None or request_ns is None or response_ns is None:
        return
    rebalances = observation.capture_state.state(_Rebalances)
    key = group_key_of(observation, request.group_id), response.generation_id
    first = rebalances.get(key)
    if first is None or request_ns > first.response_ns:
        rebalances[key] = _Rebalance(response.leader, response.protocol_name, response_ns)
        return
    for name, value, other in (
        ("leader", response.leader, first.leader),
        ("protocol_name", response.protocol_name, first.protocol),
    ):
        if value != other:
            found = f"{name} {value!r}, another member of the generation got {other!r}"
            reporter.report_violation(Side.BROKER, found, path=name)


class _JoinedGenerations(BoundedDict[tuple[GroupKey, str], tuple[int, int]]):
    """Newest generation of each member and the time of its response."""

    def __init__(self) -> None:
        super().__init__(10 * MAX_GROUPS)


@rule(
    "G03",
    "Request with an earlier generation accepted",
    Severity.ERROR,
    source="GroupMetadataManager.validateClassicGroupHeartbeat; ClassicGroup.validateOffsetCommit",
    asks="Heartbeat, SyncGroup and OffsetCommit of a member with an earlier generation than it "
    "joined are answered with ILLEGAL_GENERATION (22); the generation of a member never decreases.",
    example="Heartbeat with generation 3 is answered with error 0, while the member is in 4",
    apis=("JoinGroup", "Heartbeat", "SyncGroup", "OffsetCommit"),
)
def check_generation(observation: Observation, reporter: Reporter) -> None:
    """Compare generations with the newest that the member joined."""
    request, response = observation.request_body, observation.response_body
    request_ns, response_ns = (
        observation.exchange.request_time_ns,
        observation.exchange.response_time_ns,
    )
    if request is None or response is None or request_ns is None or response_ns is None:
        reporter.count_unjudged(observation.unreadable_reason())
        return
    generations = observation.capture_state.state(_JoinedGenerations)
    key = (
        group_key_of(observation, request.group_id),
        request.get("member_id", "") or response.get("member_id", ""),
    )
    newest = generations.get(key)
    is_known = newest is not None and newest[1] < request_ns
    if "protocols" in request:
        if response.error_code:
            return
        if newest is not None and is_known:
            reporter.count_judged()
            if response.generation_id < newest[0]:
                found = f"generation {response.generation_id}, after {newest[0]}"
                reporter.report_violation(Side.BROKER, found, path="generation_id")
        generations[key] = response.generation_id, response_ns
        return
    generation = request.get("generation_id", request.get("generation_id_or_member_epoch", -1))
    if generation < 0:
        return
    if newest is None:
        reporter.count_unjudged("the member's join is not in the capture")
    elif is_known and generation < newest[0]:
        reporter.count_judged()
        path = _success_path(response)
        if path is not None:
            found = f"generation {generation} is accepted, the member is in {newest[0]}"
            reporter.report_violation(Side.BROKER, found, path=path)
    elif is_known:
        reporter.count_judged()


def _success_path(response: object) -> str | None:
    """Return the path of the first error code 0 in a response; None without one."""
    error_code = getattr(response, "error_code", None)
    if error_code is not None:
        return None if error_code else "error_code"
    for topic_index, topic in enumerate(getattr(response, "topics", ())):
        for index, partition in enumerate(topic.partitions):
            if not partition.error_code:
                return f"topics[{topic_index}].partitions[{index}].error_code"
    return None
