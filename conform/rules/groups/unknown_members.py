"""G, fourth part: requests of group members, and their generations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from conform.evidence.bounded_memory import BoundedDict
from conform.evidence.group_key import MAX_GROUPS, GroupKey, group_key_of
from conform.evidence.observation import Observation
from conform.evidence.reporter import Reporter
from conform.registry.rank import Severity
from conform.registry.rule import Side, rule

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
    "A group must serve none but its members",
    Severity.ERROR,
    source="GroupMetadataManager.java (classicGroupHeartbeat, classicGroupSync), ClassicGroup.java "
    "(validateOffsetCommit): UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION",
    asks="Heartbeat, SyncGroup and commits succeed only for a member of the newest generation, "
    "as its leader was told, that did not leave, and not in a generation to come.",
    example="Heartbeat of member 'x' in generation 4, whose members are 'a' and 'b'",
    apis=("JoinGroup", *_MEMBER_APIS),
)
def members_only(turn: Observation, say: Reporter) -> None:
    """Record members of generations; report successful requests of others."""
    asked, told = turn.request_body, turn.response_body
    sent_ns, told_ns = turn.exchange.request_time_ns, turn.exchange.response_time_ns
    if asked is None or told is None or sent_ns is None or told_ns is None:
        say.count_unjudged(turn.unreadable_reason())
        return
    state = turn.capture_state.state(_Members)
    group = group_key_of(turn, asked.group_id)
    if turn.exchange.api == "JoinGroup":
        _record_members(turn, state, group, asked, told, told_ns)
        return
    if turn.exchange.api == "LeaveGroup":
        _record_departures(state, group, asked, told, told_ns)
        return
    known = state.get(group)
    generation = asked.get("generation_id", asked.get("generation_id_or_member_epoch", -1))
    member = asked.get("member_id", "")
    if known is None or known.response_ns >= sent_ns or group in state.static:
        say.count_unjudged("it is not in the capture who is in the group")
        return
    if generation < 0 or asked.get("group_instance_id") is not None or not is_success(told):
        return
    say.count_judged()
    found = ""
    if generation > known.number and not turn.capture_state.incomplete_reason:
        found = f"generation {generation} is served, the newest is {known.number}"
    elif generation == known.number and member not in known.members:
        found = f"{member!r} is served, who is none of the {len(known.members)} members"
    elif generation == known.number and state.left.get((group, member), sent_ns) < sent_ns:
        found = f"{member!r} is served, who left"
    if found:
        say.report_violation(Side.BROKER, found)


def _record_members(
    turn: Observation, state: _Members, group: GroupKey, asked: Any, told: Any, told_ns: int
) -> None:
    """Record the members in a leader's response; a member that rejoins has not left."""
    if asked.get("group_instance_id") is not None:
        state.static[group] = None
    if told.error_code or told.member_id != told.leader:
        if not told.error_code:
            known = state.get(group)
            if known is not None and told.generation_id > known.number:
                del state[group]  # the response to its leader is still to come
        return
    if any(each.get("group_instance_id") is not None for each in told.members):
        state.static[group] = None
    members = frozenset(each.member_id for each in told.members)
    known = state.get(group)
    if known is None or told.generation_id >= known.number:
        state[group] = _Generation(told.generation_id, members, told.protocol_name, told_ns)
    for member in members:
        state.left.pop((group, member), None)


def _record_departures(
    state: _Members, group: GroupKey, asked: Any, told: Any, told_ns: int
) -> None:
    """Record members that left."""
    if told.error_code:
        return
    left = [asked.member_id] if "member_id" in asked else []
    left += [each.member_id for each in told.get("members") or () if not each.error_code]
    for member in left:
        state.left[group, member] = told_ns


def is_success(told: Any) -> bool:
    """Return whether a response reports success, at least in part."""
    if "error_code" in told:
        return not told.error_code
    return any(not each.error_code for topic in told.topics or () for each in topic.partitions)


class _Protocols(BoundedDict[tuple[GroupKey, int], "tuple[str | None, str | None]"]):
    """Protocol type and name of each generation, from JoinGroup responses."""

    def __init__(self) -> None:
        super().__init__(MAX_GROUPS)


@rule(
    "G11",
    "SyncGroup must go by the protocol of its generation",
    Severity.ERROR,
    source="KIP-559; GroupMetadataManager.classicGroupSync: INCONSISTENT_GROUP_PROTOCOL",
    asks="From SyncGroup v5 on the request has the type and the name of the protocol that "
    "JoinGroup answered for the generation, and so has the answer; brokers refuse another.",
    example="protocol_name 'sticky', where JoinGroup answered 'range'",
    apis=("JoinGroup", "SyncGroup"),
)
def same_protocol(turn: Observation, say: Reporter) -> None:
    """Compare the protocol of SyncGroup with that of JoinGroup."""
    asked, told = turn.request_body, turn.response_body
    if asked is None or told is None:
        say.count_unjudged(turn.unreadable_reason())
        return
    known = turn.capture_state.state(_Protocols)
    group = group_key_of(turn, asked.group_id)
    if turn.exchange.api == "JoinGroup":
        if not told.error_code:
            kind = told.get("protocol_type") or asked.protocol_type
            known[group, told.generation_id] = kind, told.protocol_name
        return
    due = known.get((group, asked.generation_id))
    if due is None or told.error_code or "protocol_name" not in asked:
        return
    say.count_judged()
    for side, body in ((Side.CLIENT, asked), (Side.BROKER, told)):
        given = body.protocol_type, body.protocol_name
        for name, here, there in zip(("type", "name"), given, due, strict=True):
            if here is not None and here != there:
                found = f"protocol {name} {here!r}, where JoinGroup answered {there!r}"
                say.report_violation(side, found, path=f"protocol_{name}")
