"""G, first part: joins and generations of classic group members."""

from __future__ import annotations

from dataclasses import dataclass

from conform.evidence.bounded_memory import BoundedDict
from conform.evidence.group_key import MAX_GROUPS, GroupKey, group_key_of
from conform.evidence.observation import Observation
from conform.evidence.reporter import Reporter
from conform.registry.rank import Severity
from conform.registry.rule import Side, rule

_MEMBER_ID_REQUIRED, _ILLEGAL_GENERATION = 79, 22
_FIRST_REQUIRING_ID = 4


class _AssignedIds(BoundedDict[str, str]):
    """Member ids assigned on this connection for the next JoinGroup, by group."""

    def __init__(self) -> None:
        super().__init__(MAX_GROUPS)


@rule(
    "G01",
    "A member without an id is given one first, and joins with it",
    Severity.WARNING,
    source="KIP-394; GroupMetadataManager.classicGroupJoinToClassicGroup; "
    "JoinGroupRequest.requiresKnownMemberId",
    asks="From JoinGroup v4 on, an empty member id that is not a static member's is answered with "
    "MEMBER_ID_REQUIRED (79) and an id, and the client comes back with that.",
    example="JoinGroup v5 with an empty member id is answered with a generation",
    apis=("JoinGroup",),
)
def member_id_first(turn: Observation, say: Reporter) -> None:
    """Check joins with an empty member id, and the joins that follow MEMBER_ID_REQUIRED."""
    asked, told = turn.request_body, turn.response_body
    if asked is None or told is None:
        say.count_unjudged(turn.unreadable_reason())
        return
    if (turn.version or 0) < _FIRST_REQUIRING_ID or asked.get("group_instance_id") is not None:
        return
    given = turn.connection.state(_AssignedIds)
    before = given.pop(asked.group_id, None)
    if before is not None:
        say.count_judged()
        if asked.member_id != before:
            found = f"joins with {asked.member_id!r}, not with the id that it was given"
            say.report_violation(Side.CLIENT, found, path="member_id")
    if told.error_code == _MEMBER_ID_REQUIRED:
        say.count_judged()
        given[asked.group_id] = told.member_id
        if not told.member_id:
            found = "MEMBER_ID_REQUIRED, but no member id"
            say.report_violation(Side.BROKER, found, path="member_id", severity=Severity.ERROR)
    elif not asked.member_id and not told.error_code:
        say.count_judged()
        say.report_violation(
            Side.BROKER, "a member without an id is taken at once", path="member_id"
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
    "Only the leader is told of the members, and all get one protocol that each has",
    Severity.ERROR,
    source="GroupMetadataManager.classicGroupJoin; JoinGroupResponse.json",
    asks="The leader is told of all members, itself among them, others of none; the protocol is "
    "one that the member named; leader and protocol are the same for all who joined together.",
    example="protocol 'sticky' is answered to a member that named 'range' only",
    apis=("JoinGroup",),
)
def one_leader(turn: Observation, say: Reporter) -> None:
    """Check successful JoinGroup responses."""
    asked, told = turn.request_body, turn.response_body
    if asked is None or told is None:
        say.count_unjudged(turn.unreadable_reason())
        return
    if told.error_code:
        return
    say.count_judged()
    members = [each.member_id for each in told.members]
    if told.member_id == told.leader:
        if told.leader not in members:
            found = f"the leader is told of {len(members)} members, not of itself"
            say.report_violation(Side.BROKER, found, path="members")
    elif members:
        found = f"who is not the leader is told of {len(members)} members"
        say.report_violation(Side.BROKER, found, path="members")
    named = [each.name for each in asked.protocols]
    if told.protocol_name not in named:
        found = f"protocol {told.protocol_name!r}, where the member named {', '.join(named)!r}"
        say.report_violation(Side.BROKER, found, path="protocol_name")
    _compare_with_generation(turn, say)


def _compare_with_generation(turn: Observation, say: Reporter) -> None:
    """Compare a response with the first of its generation, if the requests overlapped in time."""
    asked, told = turn.request_body, turn.response_body
    sent_ns, told_ns = turn.exchange.request_time_ns, turn.exchange.response_time_ns
    if asked is None or told is None or sent_ns is None or told_ns is None:
        return
    known = turn.capture_state.state(_Rebalances)
    key = group_key_of(turn, asked.group_id), told.generation_id
    first = known.get(key)
    if first is None or sent_ns > first.response_ns:
        known[key] = _Rebalance(told.leader, told.protocol_name, told_ns)
        return
    for name, here, there in (
        ("leader", told.leader, first.leader),
        ("protocol_name", told.protocol_name, first.protocol),
    ):
        if here != there:
            found = f"{name} {here!r}, where another member of the generation got {there!r}"
            say.report_violation(Side.BROKER, found, path=name)


class _JoinedGenerations(BoundedDict[tuple[GroupKey, str], tuple[int, int]]):
    """Newest generation of each member and the time of its response."""

    def __init__(self) -> None:
        super().__init__(10 * MAX_GROUPS)


@rule(
    "G03",
    "A generation that is over is told so",
    Severity.ERROR,
    source="GroupMetadataManager.validateClassicGroupHeartbeat; ClassicGroup.validateOffsetCommit",
    asks="Heartbeat, SyncGroup and OffsetCommit of a member with an older generation than it "
    "joined are answered with ILLEGAL_GENERATION (22); generations of a member go up.",
    example="Heartbeat with generation 3 is answered with error 0, where the member is in 4",
    apis=("JoinGroup", "Heartbeat", "SyncGroup", "OffsetCommit"),
)
def newest_generation(turn: Observation, say: Reporter) -> None:
    """Compare generations with the newest that the member joined."""
    asked, told = turn.request_body, turn.response_body
    sent_ns, told_ns = turn.exchange.request_time_ns, turn.exchange.response_time_ns
    if asked is None or told is None or sent_ns is None or told_ns is None:
        say.count_unjudged(turn.unreadable_reason())
        return
    joined = turn.capture_state.state(_JoinedGenerations)
    key = (
        group_key_of(turn, asked.group_id),
        asked.get("member_id", "") or told.get("member_id", ""),
    )
    known = joined.get(key)
    is_known = known is not None and known[1] < sent_ns
    if "protocols" in asked:
        if told.error_code:
            return
        if known is not None and is_known:
            say.count_judged()
            if told.generation_id < known[0]:
                found = f"generation {told.generation_id}, after {known[0]}"
                say.report_violation(Side.BROKER, found, path="generation_id")
        joined[key] = told.generation_id, told_ns
        return
    generation = asked.get("generation_id", asked.get("generation_id_or_member_epoch", -1))
    if generation < 0:
        return
    if known is None:
        say.count_unjudged("it is not in the capture how the member joined")
    elif is_known and generation < known[0]:
        say.count_judged()
        taken = _success_path(told)
        if taken is not None:
            found = f"generation {generation} is taken, where the member is in {known[0]}"
            say.report_violation(Side.BROKER, found, path=taken)
    elif is_known:
        say.count_judged()


def _success_path(told: object) -> str | None:
    """Return the path of the first error code 0 in a response; None if there is none."""
    errors = getattr(told, "error_code", None)
    if errors is not None:
        return None if errors else "error_code"
    for at, topic in enumerate(getattr(told, "topics", ())):
        for index, partition in enumerate(topic.partitions):
            if not partition.error_code:
                return f"topics[{at}].partitions[{index}].error_code"
    return None
