"""Rules R: Kafka Streams groups with broker-side task assignment (KIP-1071)."""

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
    "Invalid heartbeat of a streams group member, or a wrong response",
    Severity.ERROR,
    source="KIP-1071; GroupMetadataManager.throwIfStreamsGroupHeartbeatRequestIsInvalid, "
    "throwIfStreamsGroupMemberEpochIsInvalid: INVALID_REQUEST, so a warning where it is rejected",
    asks="Epoch 0 joins, with a topology, a rebalance timeout and no tasks; -1 and, for static "
    "members, -2 leave. The response contains an epoch above 0 that does not decrease, or the "
    "epoch with which the member leaves.",
    example="epoch 0 without a topology",
    apis=("StreamsGroupHeartbeat",),
)
def check_streams_group_epochs(observation: Observation, reporter: Reporter) -> None:
    """Check a heartbeat request and its response."""
    judge_heartbeat(observation, reporter, _invalid_field)


def _invalid_field(request: Any, _version: int) -> tuple[str, str]:
    """Return the invalid field of a request and a description; both empty if it is valid."""
    epoch = request.member_epoch
    if epoch < _LEAVES_STATIC:
        return "member_epoch", f"epoch {epoch}"
    if not request.member_id:
        return "member_id", "no member id"
    if not request.group_id:
        return "group_id", "no group"
    if epoch == _LEAVES_STATIC and request.instance_id is None:
        return "instance_id", "leaves temporarily, but is no static member"
    if epoch != _JOINS:
        return "", ""
    if request.topology is None:
        return "topology", "joins without a topology"
    if request.rebalance_timeout_ms <= 0:
        return "rebalance_timeout_ms", "joins without a rebalance timeout"
    for name in _TASKS:
        if request[name] is None or request[name]:
            return name, "joins without an empty list of tasks"
    return "", ""


class _Topologies(BoundedDict[str, frozenset[str]]):
    """Subtopologies sent on a connection, by group."""


@rule(
    "R02",
    "Task of an unknown subtopology, or in two roles",
    Severity.ERROR,
    source="KIP-1071; StreamsGroupHeartbeatResponse.json; TaskAssignor: a member holds a task as "
    "active, standby or warm-up task",
    asks="The tasks assigned to a member belong to subtopologies of the group's topology, and no "
    "task is assigned to it in two roles.",
    example="task 0_1 is both active and standby",
    apis=("StreamsGroupHeartbeat",),
)
def check_tasks(observation: Observation, reporter: Reporter) -> None:
    """Compare the tasks of a response with the topology and with each other."""
    request, response = observation.request_body, observation.response_body
    if request is None or response is None:
        reporter.count_unjudged(observation.unreadable_reason())
        return
    topologies = observation.connection.state(_Topologies)
    if request.topology is not None and not response.error_code:
        names = frozenset(each.subtopology_id for each in request.topology.subtopologies or ())
        topologies[request.group_id] = names
    topology = topologies.get(request.group_id)
    seen: dict[tuple[str, int], str] = {}
    for role in _TASKS:
        for index, task in enumerate(response[role] or ()):
            reporter.count_judged()
            path = f"{role}[{index}]"
            if topology is not None and task.subtopology_id not in topology:
                found = f"a task of the unknown subtopology {task.subtopology_id!r}"
                reporter.report_violation(Side.BROKER, found, path=path)
            for partition in task.partitions or ():
                first_role = seen.setdefault((task.subtopology_id, partition), role)
                if first_role != role:
                    found = f"task {task.subtopology_id}_{partition} is also in {first_role}"
                    reporter.report_violation(Side.BROKER, found, path=path)


@rule(
    "R03",
    "Subtopology without sources",
    Severity.WARNING,
    source="KIP-1071: STREAMS_INVALID_TOPOLOGY (130); StreamsTopology.java",
    asks="Each subtopology reads a topic, by name, by a regular expression or by repartitioning; "
    "copartition groups refer to sources at positions that exist.",
    example="a subtopology without source topics",
    apis=("StreamsGroupHeartbeat",),
)
def check_sources(observation: Observation, reporter: Reporter) -> None:
    """Check the topology in a request."""
    request = observation.request_body
    if request is None or request.topology is None:
        return
    reporter.count_judged()
    for index, subtopology in enumerate(request.topology.subtopologies or ()):
        path = f"topology.subtopologies[{index}]"
        sources = {
            name: len(subtopology[name] or ())
            for name in ("source_topics", "source_topic_regex", "repartition_source_topics")
        }
        if not any(sources.values()):
            found = f"subtopology {subtopology.subtopology_id!r} reads no topic"
            reporter.report_violation(Side.CLIENT, found, path=path)
        for group in subtopology.copartition_groups or ():
            for name, count in sources.items():
                if any(not 0 <= position < count for position in group[name] or ()):
                    found = f"a copartition group names a position that {name} does not have"
                    reporter.report_violation(Side.CLIENT, found, path=f"{path}.copartition_groups")
