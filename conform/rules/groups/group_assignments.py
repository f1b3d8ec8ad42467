"""Rules G04 and G05: assignments and member metadata of classic groups."""

from __future__ import annotations

from dataclasses import dataclass, field

from conform.evidence.bounded_memory import BoundedDict
from conform.evidence.observation import Observation
from conform.evidence.reporter import Reporter
from conform.registry.rank import Severity
from conform.registry.rule import Side, rule
from conform.rules.groups.group_key import MAX_GROUPS, GroupKey, group_key_of
from dissector.protocol.embedded.membership.group_members import MemberField, read_member

_CONSUMER = "consumer"
_MAX_PENDING = 200


@dataclass(slots=True)
class _LeaderAssignments:
    """The assignments from a generation's leader, and the exchanges to compare with them."""

    leader: str = ""
    assignments: dict[str, bytes] | None = None
    pending: list[Observation] = field(default_factory=list)


class _Assignments(BoundedDict[tuple[GroupKey, int, str], _LeaderAssignments]):
    """Keyed by group, generation and leader (generations may restart); and each member's leader."""

    def __init__(self) -> None:
        super().__init__(MAX_GROUPS)
        self.leaders: BoundedDict[tuple[GroupKey, int, str], str] = BoundedDict(10 * MAX_GROUPS)


@rule(
    "G04",
    "Assignment that is not the leader's",
    Severity.ERROR,
    source="GroupMetadataManager.classicGroupSync; SyncGroupRequest.json",
    asks="SyncGroup of a member that is not the leader contains no assignments, which brokers "
    "ignore; the response contains the bytes that the leader assigned to this member, or none.",
    example="a member gets the assignment of another member",
    apis=("JoinGroup", "SyncGroup"),
)
def check_assignment(observation: Observation, reporter: Reporter) -> None:
    """Record leaders and their assignments; compare the assignments of members."""
    request, response = observation.request_body, observation.response_body
    if request is None or response is None:
        reporter.count_unjudged(observation.unreadable_reason())
        return
    state = observation.capture_state.state(_Assignments)
    group = group_key_of(observation, request.group_id)
    if "protocols" in request:
        if not response.error_code:
            state.leaders[group, response.generation_id, response.member_id] = response.leader
        return
    leader = state.leaders.get((group, request.generation_id, request.member_id))
    if leader is None:
        reporter.count_unjudged("the leader of the group is not in the capture")
        return
    key = group, request.generation_id, leader
    from_leader = state.get(key) or _LeaderAssignments(leader)
    state[key] = from_leader
    if request.member_id == leader:
        # A static leader that rejoins sends no assignments: the earlier ones stay valid.
        if from_leader.assignments is None and request.assignments and not response.error_code:
            from_leader.assignments = {
                each.member_id: each.assignment for each in request.assignments
            }
    elif request.assignments:
        found = f"{len(request.assignments)} assignments from a member that is not the leader"
        reporter.report_violation(Side.CLIENT, found, path="assignments", severity=Severity.WARNING)
    if not response.error_code and len(from_leader.pending) < _MAX_PENDING:
        from_leader.pending.append(
            observation if from_leader.assignments is not None else observation.detach()
        )
    if from_leader.assignments is not None:
        _compare_pending(from_leader, reporter)


def _compare_pending(from_leader: _LeaderAssignments, reporter: Reporter) -> None:
    """Compare the pending responses with the assignments of the leader."""
    pending, from_leader.pending = from_leader.pending, []
    for observation in pending:
        request, response = observation.request_body, observation.response_body
        if request is None or response is None or from_leader.assignments is None:
            continue
        expected = from_leader.assignments.get(request.member_id)
        if expected is None and request.get("group_instance_id") is not None:
            reporter.count_unjudged(
                "a static member rejoined with an id that the leader does not know"
            )
            continue
        expected = expected or b""
        reporter.count_judged()
        if response.assignment != expected:
            found = (
                f"{len(response.assignment)} bytes, not the {len(expected)} that the leader "
                "assigned to this member"
            )
            reporter.report_violation(Side.BROKER, found, path="assignment", retained=observation)


@rule(
    "G05",
    "Unreadable subscription or assignment of a consumer",
    Severity.ERROR,
    source="ConsumerProtocolSubscription.json, ConsumerProtocolAssignment.json; "
    "ConsumerProtocol.java reads newer versions as the newest known version",
    asks="Where the protocol type is consumer, metadata and assignments are of its versions 0 to "
    "3, or begin like v3.",
    example="a subscription ends within its topics",
    apis=("JoinGroup", "SyncGroup"),
)
def check_readable_members(observation: Observation, reporter: Reporter) -> None:
    """Decode the metadata and the assignments in a request."""
    request = observation.request_body
    if request is None:
        reporter.count_unjudged(observation.unreadable_reason(response=False))
        return
    if "protocols" in request:
        observation.connection.state(_ProtocolTypes)[request.group_id] = request.protocol_type
        if request.protocol_type == _CONSUMER:
            for index, each in enumerate(request.protocols):
                _check_readable(reporter, f"protocols[{index}].metadata", each.metadata, "metadata")
        return
    protocol_type = request.get("protocol_type") or observation.connection.state(
        _ProtocolTypes
    ).get(request.group_id)
    if request.assignments and protocol_type is None:
        reporter.count_unjudged("the protocol type of the group is not in the capture")
    elif protocol_type == _CONSUMER:
        for index, each in enumerate(request.assignments):
            _check_readable(
                reporter, f"assignments[{index}].assignment", each.assignment, "assignment"
            )


class _ProtocolTypes(BoundedDict[str, str]):
    """The protocol types of the groups that this connection joined."""

    def __init__(self) -> None:
        super().__init__(MAX_GROUPS)


def _check_readable(reporter: Reporter, path: str, data: bytes, part: MemberField) -> None:
    member = read_member(path, data, part, _CONSUMER)
    if member is None:
        return
    reporter.count_judged()
    if member.value is None:
        reporter.report_violation(Side.CLIENT, f"{member.problems[0].what}", path=path)
    elif problems := [each for each in member.problems if not each.is_foreign]:
        found = problems[0].what
        reporter.report_violation(Side.CLIENT, found, path=path, severity=Severity.WARNING)
