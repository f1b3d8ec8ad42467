"""R: Kafka Streams groups with broker-side task assignment (KIP-1071)."""

from __future__ import annotations

from typing import Any

from conform.evidence.bounded_memory import BoundedDict
from conform.evidence.observation import Observation
from conform.evidence.reporter import Reporter
from conform.registry.rank import Severity
from conform.registry.rule import Side, rule
from conform.rules.groups.consumer_groups import judge_heartbeat

_JOINS, _LEAVES_STATIC = 0, -2
_TASKS = ("active_tasks", "standby_tasks", "warmup_tasks")


@rule(
    "R01",
    "A member of a streams group must join, stay and leave by its epochs",
    Severity.ERROR,
    source="KIP-1071; GroupMetadataManager.throwIfStreamsGroupHeartbeatRequestIsInvalid, "
    "throwIfStreamsGroupMemberEpochIsInvalid: INVALID_REQUEST, so a warning where it is refused",
    asks="Epoch 0 joins, with a topology, a rebalance timeout and no tasks; -1 and, for static "
    "members, -2 leave; the member is told an epoch above 0 that does not go down, or that with "
    "which it leaves.",
    example="epoch 0 without a topology",
    apis=("StreamsGroupHeartbeat",),
)
def streams_group_epochs(turn: Observation, say: Reporter) -> None:
    """Check a heartbeat request and its response."""
    judge_heartbeat(turn, say, _invalid_field)


def _invalid_field(asked: Any, _version: int) -> tuple[str, str]:
    """Return the invalid field of a request and a description; both empty if it is valid."""
    epoch = asked.member_epoch
    if epoch < _LEAVES_STATIC:
        return "member_epoch", f"epoch {epoch}"
    if not asked.member_id:
        return "member_id", "no member id"
    if not asked.group_id:
        return "group_id", "no group"
    if epoch == _LEAVES_STATIC and asked.instance_id is None:
        return "instance_id", "leaves for a while, but is no static member"
    if epoch != _JOINS:
        return "", ""
    if asked.topology is None:
        return "topology", "joins without a topology"
    if asked.rebalance_timeout_ms <= 0:
        return "rebalance_timeout_ms", "joins without a rebalance timeout"
    for name in _TASKS:
        if asked[name] is None or asked[name]:
            return name, "joins, but does not say that it holds no tasks"
    return "", ""


class _Topologies(BoundedDict[str, frozenset[str]]):
    """Subtopologies sent on a connection, by group."""


@rule(
    "R02",
    "Tasks must be of the topology, and each in one role",
    Severity.ERROR,
    source="KIP-1071; StreamsGroupHeartbeatResponse.json; TaskAssignor: a member holds a task as "
    "active, standby or warm-up task",
    asks="The tasks that a member is given are of subtopologies that the group's topology has, and "
    "no task is given to it in two roles.",
    example="task 0_1 is both active and standby",
    apis=("StreamsGroupHeartbeat",),
)
def tasks_are_known(turn: Observation, say: Reporter) -> None:
    """Compare the tasks of a response with the topology and with each other."""
    asked, told = turn.request_body, turn.response_body
    if asked is None or told is None:
        say.count_unjudged(turn.unreadable_reason())
        return
    known = turn.connection.state(_Topologies)
    if asked.topology is not None and not told.error_code:
        names = frozenset(each.subtopology_id for each in asked.topology.subtopologies or ())
        known[asked.group_id] = names
    topology = known.get(asked.group_id)
    seen: dict[tuple[str, int], str] = {}
    for role in _TASKS:
        for at, task in enumerate(told[role] or ()):
            say.count_judged()
            path = f"{role}[{at}]"
            if topology is not None and task.subtopology_id not in topology:
                found = f"a task of subtopology {task.subtopology_id!r}, which is none"
                say.report_violation(Side.BROKER, found, path=path)
            for partition in task.partitions or ():
                other = seen.setdefault((task.subtopology_id, partition), role)
                if other != role:
                    found = f"task {task.subtopology_id}_{partition} is in {other}, too"
                    say.report_violation(Side.BROKER, found, path=path)


@rule(
    "R03",
    "A topology must have sources for each subtopology",
    Severity.WARNING,
    source="KIP-1071: STREAMS_INVALID_TOPOLOGY (130); StreamsTopology.java",
    asks="Each subtopology reads a topic, by name, by a regular expression or by repartitioning; "
    "groups that are copartitioned name sources by positions that exist.",
    example="a subtopology without source topics",
    apis=("StreamsGroupHeartbeat",),
)
def has_sources(turn: Observation, say: Reporter) -> None:
    """Check the topology in a request."""
    asked = turn.request_body
    if asked is None or asked.topology is None:
        return
    say.count_judged()
    for at, each in enumerate(asked.topology.subtopologies or ()):
        path = f"topology.subtopologies[{at}]"
        sources = {
            name: len(each[name] or ())
            for name in ("source_topics", "source_topic_regex", "repartition_source_topics")
        }
        if not any(sources.values()):
            found = f"subtopology {each.subtopology_id!r} reads no topic"
            say.report_violation(Side.CLIENT, found, path=path)
        for group in each.copartition_groups or ():
            for name, count in sources.items():
                if any(not 0 <= place < count for place in group[name] or ()):
                    found = f"a copartition group names a position that {name} does not have"
                    say.report_violation(Side.CLIENT, found, path=f"{path}.copartition_groups")
