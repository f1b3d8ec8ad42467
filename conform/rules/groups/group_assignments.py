"""G, second part: assignments and member metadata of classic groups."""

from __future__ import annotations

from dataclasses import dataclass, field

from conform.evidence.bounded_memory import BoundedDict
from conform.evidence.group_key import MAX_GROUPS, GroupKey, group_key_of
from conform.evidence.observation import Observation
from conform.evidence.reporter import Reporter
from conform.registry.rank import Severity
from conform.registry.rule import Side, rule
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
    """By group, generation and leader (groups may start over); and the leader of each member."""

    def __init__(self) -> None:
        super().__init__(MAX_GROUPS)
        self.leaders: BoundedDict[tuple[GroupKey, int, str], str] = BoundedDict(10 * MAX_GROUPS)


@rule(
    "G04",
    "Only the leader assigns, and each member gets what the leader gave it",
    Severity.ERROR,
    source="GroupMetadataManager.classicGroupSync; SyncGroupRequest.json",
    asks="SyncGroup of who is not the leader has no assignments, which brokers pass over; the "
    "response has the bytes that the leader gave to this member, or none.",
    example="a member gets the assignment of another one",
    apis=("JoinGroup", "SyncGroup"),
)
def own_assignment(turn: Observation, say: Reporter) -> None:
    """Record leaders and their assignments; compare the assignments of members."""
    asked, told = turn.request_body, turn.response_body
    if asked is None or told is None:
        say.count_unjudged(turn.unreadable_reason())
        return
    state = turn.capture_state.state(_Assignments)
    group = group_key_of(turn, asked.group_id)
    if "protocols" in asked:
        if not told.error_code:
            state.leaders[group, told.generation_id, told.member_id] = told.leader
        return
    leader = state.leaders.get((group, asked.generation_id, asked.member_id))
    if leader is None:
        say.count_unjudged("it is not in the capture who leads the group")
        return
    key = group, asked.generation_id, leader
    given = state.get(key) or _LeaderAssignments(leader)
    state[key] = given
    if asked.member_id == leader:
        # A static leader that rejoins sends no assignments: the earlier ones stay valid.
        if given.assignments is None and asked.assignments and not told.error_code:
            given.assignments = {each.member_id: each.assignment for each in asked.assignments}
    elif asked.assignments:
        found = f"{len(asked.assignments)} assignments of who is not the leader"
        say.report_violation(Side.CLIENT, found, path="assignments", severity=Severity.WARNING)
    if not told.error_code and len(given.pending) < _MAX_PENDING:
        given.pending.append(turn if given.assignments is not None else turn.detach())
    if given.assignments is not None:
        _compare_pending(given, say)


def _compare_pending(given: _LeaderAssignments, say: Reporter) -> None:
    """Compare the pending responses with the assignments of the leader."""
    waiting, given.pending = given.pending, []
    for turn in waiting:
        asked, told = turn.request_body, turn.response_body
        if asked is None or told is None or given.assignments is None:
            continue
        wanted = given.assignments.get(asked.member_id)
        if wanted is None and asked.get("group_instance_id") is not None:
            say.count_unjudged(
                "a static member that came back has another id than the leader knows"
            )
            continue
        wanted = wanted or b""
        say.count_judged()
        if told.assignment != wanted:
            found = (
                f"{len(told.assignment)} bytes, not the {len(wanted)} that the leader gave to "
                "this member"
            )
            say.report_violation(Side.BROKER, found, path="assignment", retained=turn)


@rule(
    "G05",
    "Subscriptions and assignments of consumers can be read by the other members",
    Severity.ERROR,
    source="ConsumerProtocolSubscription.json, ConsumerProtocolAssignment.json; "
    "ConsumerProtocol.java reads newer versions as the newest that it knows",
    asks="Where the protocol type is consumer, metadata and assignments are of its versions 0 to "
    "3, or begin as v3 does.",
    example="a subscription ends within its topics",
    apis=("JoinGroup", "SyncGroup"),
)
def readable_members(turn: Observation, say: Reporter) -> None:
    """Decode the metadata and the assignments in a request."""
    asked = turn.request_body
    if asked is None:
        say.count_unjudged(turn.unreadable_reason(response=False))
        return
    if "protocols" in asked:
        turn.connection.state(_ProtocolTypes)[asked.group_id] = asked.protocol_type
        if asked.protocol_type == _CONSUMER:
            for index, each in enumerate(asked.protocols):
                _check_readable(say, f"protocols[{index}].metadata", each.metadata, "metadata")
        return
    kind = asked.get("protocol_type") or turn.connection.state(_ProtocolTypes).get(asked.group_id)
    if asked.assignments and kind is None:
        say.count_unjudged("it is not in the capture of which type the group is")
    elif kind == _CONSUMER:
        for index, each in enumerate(asked.assignments):
            _check_readable(say, f"assignments[{index}].assignment", each.assignment, "assignment")


class _ProtocolTypes(BoundedDict[str, str]):
    """The protocol types of the groups that this connection joined."""

    def __init__(self) -> None:
        super().__init__(MAX_GROUPS)


def _check_readable(say: Reporter, path: str, data: bytes, part: MemberField) -> None:
    found = read_member(path, data, part, _CONSUMER)
    if found is None:
        return
    say.count_judged()
    if found.value is None:
        say.report_violation(Side.CLIENT, f"{found.problems[0].what}", path=path)
    elif wrong := [each for each in found.problems if not each.is_foreign]:
        what = wrong[0].what
        say.report_violation(Side.CLIENT, what, path=path, severity=Severity.WARNING)
