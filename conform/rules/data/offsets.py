"""Rules G07 to G09: the committed offsets of a group."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias
from uuid import UUID

from construct import Container

from conform.evidence.bounded_memory import BoundedDict
from conform.evidence.observation import Observation
from conform.evidence.reporter import Reporter
from conform.registry.rank import Severity
from conform.registry.rule import Side, rule

_FIRST_OF_GROUPS = 8
_UNSTABLE_OFFSET_COMMIT = 88
_MAX_OFFSETS = 100_000
_MAX_TRANSACTIONS = 1_000
_MAX_FETCHES = 20

GroupPartition: TypeAlias = tuple[str, object, int]
"""Group, topic by name or id, and partition."""


def _topic_key(topic: Container) -> str | UUID:
    """Return the name of a topic; its id in versions without names."""
    found: str | UUID = topic.topic_id if topic.get("name") is None else topic.name
    return found


def _groups(body: Container) -> list[tuple[Container, str]]:
    """Return the groups of an OffsetFetch message, and the path of each."""
    if "groups" in body:
        return [(each, f"groups[{index}].") for index, each in enumerate(body.groups)]
    return [(body, "")]


def _fetched_partitions(
    request: Container, response: Container
) -> Iterator[tuple[GroupPartition, Container, str]]:
    """Yield each partition of an OffsetFetch response, with its key and its path."""
    for index, (group, path) in enumerate(_groups(response)):
        name = group.get("group_id", request.get("group_id"))
        if name is None or index >= len(_groups(request)):
            continue
        for topic_index, topic in enumerate(group.topics):
            for partition_index, partition in enumerate(topic.partitions):
                key = name, _topic_key(topic), partition.partition_index
                yield key, partition, f"{path}topics[{topic_index}].partitions[{partition_index}]"


@dataclass(frozen=True, slots=True)
class _Commit:
    """The newest committed offset with its metadata, and the time of the response."""

    offset: int
    metadata: str
    response_ns: int


class _Commits(BoundedDict[GroupPartition, _Commit]):
    """
    Offsets that members of classic groups committed on this connection since they joined.

    Attributes:
        groups: Groups joined on it: in other groups the broker may reassign partitions at any time.
    """

    def __init__(self) -> None:
        super().__init__(_MAX_OFFSETS)
        self.groups: BoundedDict[str, None] = BoundedDict(_MAX_TRANSACTIONS)

    def forget(self, group: str) -> None:
        """Discard the commits of a group: other members may commit from now on."""
        for key in [each for each in self if each[0] == group]:
            del self[key]


@rule(
    "G07",
    "Committed offset or its metadata is not returned",
    Severity.ERROR,
    source="OffsetMetadataManager; OffsetCommitRequest.json, OffsetFetchResponse.json",
    asks="A member of a generation fetches, on the connection on which it joined and until it "
    "joins again, the offset and metadata that it committed.",
    example="offset 42 with metadata 'here' is returned with empty metadata",
    apis=("JoinGroup", "OffsetCommit", "OffsetFetch"),
)
def check_committed_offset_returned(observation: Observation, reporter: Reporter) -> None:
    """Record commits; compare fetched offsets with them."""
    request, response, commits = (
        observation.request_body,
        observation.response_body,
        observation.connection.state(_Commits),
    )
    if request is None or response is None or not observation.is_complete:
        reporter.count_unjudged(
            observation.unreadable_reason() or observation.connection.incomplete_reason
        )
        commits.clear()
    elif observation.exchange.api == "JoinGroup":
        commits.forget(request.group_id)
        commits.groups[request.group_id] = None
    elif observation.exchange.api == "OffsetCommit":
        _record_commits(observation, commits, request, response)
    else:
        _compare_with_commits(observation, reporter, commits, request, response)


def _record_commits(
    observation: Observation, commits: _Commits, request: Container, response: Container
) -> None:
    """Record commits without an error; discard others, which may or may not be committed."""
    errors = {
        (_topic_key(topic), partition.partition_index): partition.error_code
        for topic in response.topics
        for partition in topic.partitions
    }
    is_member = request.get("generation_id_or_member_epoch", -1) >= 0
    is_member = is_member and request.group_id in commits.groups
    for topic in request.topics:
        for partition in topic.partitions:
            key = request.group_id, _topic_key(topic), partition.partition_index
            commits.pop(key, None)
            is_taken = errors.get(key[1:]) == 0
            if is_taken and is_member and observation.exchange.response_time_ns is not None:
                metadata = partition.committed_metadata or ""
                commits[key] = _Commit(
                    partition.committed_offset, metadata, observation.exchange.response_time_ns
                )


def _compare_with_commits(
    observation: Observation,
    reporter: Reporter,
    commits: _Commits,
    request: Container,
    response: Container,
) -> None:
    for key, partition, path in _fetched_partitions(request, response):
        commit = commits.get(key)
        if commit is None or partition.error_code:
            continue
        if commit.response_ns >= (observation.exchange.request_time_ns or 0):
            continue
        reporter.count_judged()
        fetched = partition.committed_offset, partition.metadata or ""
        if fetched != (commit.offset, commit.metadata):
            found = f"offset {fetched[0]} with {fetched[1]!r}, committed was {commit.offset} with "
            reporter.report_violation(Side.BROKER, f"{found}{commit.metadata!r}", path=path)


@rule(
    "G08",
    "OffsetFetch response does not contain exactly the requested partitions",
    Severity.ERROR,
    source="OffsetFetchRequest.json: null topics are all (v2+), groups (v8+); KIP-709",
    asks="The response contains each requested group once; where topics were named, it contains "
    "exactly their requested partitions.",
    example="two groups are requested, one is returned",
    apis=("OffsetFetch",),
)
def check_requested_partitions(observation: Observation, reporter: Reporter) -> None:
    """Compare groups and partitions of request and response."""
    request, response = observation.request_body, observation.response_body
    if request is None or response is None:
        reporter.count_unjudged(observation.unreadable_reason())
        return
    reporter.count_judged()
    requested_groups, returned_groups = _groups(request), _groups(response)
    names = [group_fields.get("group_id", "") for group_fields, _ in requested_groups]
    if (observation.version or 0) >= _FIRST_OF_GROUPS:
        returned_names = [group_fields.group_id for group_fields, _ in returned_groups]
        if sorted(set(names)) != sorted(returned_names):
            found = f"{len(returned_names)} groups are returned, {len(set(names))} were requested"
            reporter.report_violation(Side.BROKER, found, path="groups")
            return
    by_name = dict(zip(names, requested_groups, strict=True))
    for group, path in returned_groups:
        requested_group, _ = by_name[group.get("group_id", names[0])]
        if requested_group.topics is None or group.get("error_code"):
            continue
        requested = {
            (_topic_key(t), p) for t in requested_group.topics for p in t.partition_indexes
        }
        returned = {(_topic_key(t), p.partition_index) for t in group.topics for p in t.partitions}
        if requested != returned:
            found = f"{len(returned)} partitions are returned, not the {len(requested)} requested"
            reporter.report_violation(Side.BROKER, found, path=f"{path}topics")


@dataclass(slots=True)
class _PendingOffsets:
    """Pending offset commits of an open transaction, and requests for stable offsets."""

    broker: str
    commit_times_ns: dict[GroupPartition, int] = field(default_factory=dict)
    fetches: list[Observation] = field(default_factory=list)


class _Transactions(BoundedDict[tuple[str, int, int], _PendingOffsets]):
    """Keyed by client host, producer id and epoch: other clusters may assign the same ids."""

    def __init__(self) -> None:
        super().__init__(_MAX_TRANSACTIONS)


@rule(
    "G09",
    "Unstable offset returned to a request for stable offsets",
    Severity.ERROR,
    source="KIP-447; OffsetMetadataManager.fetchOffsets (hasPendingTransactionalOffsets)",
    asks="OffsetFetch with require_stable is answered with UNSTABLE_OFFSET_COMMIT (88) between "
    "TxnOffsetCommit and EndTxn of a transaction that ends without an error.",
    example="an offset is returned, and the transaction that changes it is committed afterwards",
    apis=("TxnOffsetCommit", "OffsetFetch", "EndTxn"),
)
def check_stable_offsets(observation: Observation, reporter: Reporter) -> None:
    """Retain fetches of pending offsets until EndTxn: it proves that the transaction was open."""
    request, response = observation.request_body, observation.response_body
    if request is None or response is None:
        reporter.count_unjudged(observation.unreadable_reason())
        return
    state, broker = (
        observation.capture_state.state(_Transactions),
        observation.connection.broker.address,
    )
    if "committed" in request:
        pending = state.pop(_producer_key(observation, request), None)
        if pending is not None and not response.error_code:
            _judge_pending(observation, reporter, pending)
    elif "producer_id" in request:
        key = _producer_key(observation, request)
        pending = state.get(key) or _PendingOffsets(broker)
        for topic in response.topics:
            for partition in topic.partitions:
                if not partition.error_code:
                    partition_key = request.group_id, _topic_key(topic), partition.partition_index
                    pending.commit_times_ns[partition_key] = (
                        observation.exchange.response_time_ns or 0
                    )
        state[key] = pending
    elif request.get("require_stable"):
        for pending in state.values():
            is_pending = any(
                pending_key in pending.commit_times_ns
                for pending_key, _, _ in _fetched_partitions(request, response)
            )
            if is_pending and pending.broker == broker and len(pending.fetches) < _MAX_FETCHES:
                pending.fetches.append(observation.detach())


def _producer_key(observation: Observation, request: Container) -> tuple[str, int, int]:
    host = observation.connection.client.address.rpartition(":")[0]
    return host, request.producer_id, request.producer_epoch


def _judge_pending(end: Observation, reporter: Reporter, pending: _PendingOffsets) -> None:
    """Judge the fetches between an offset commit and the end of its transaction."""
    ended_ns = end.exchange.request_time_ns or 0
    for fetch in pending.fetches:
        request, response = fetch.request_body, fetch.response_body
        request_ns, response_ns = (
            fetch.exchange.request_time_ns or 0,
            fetch.exchange.response_time_ns or 0,
        )
        if request is None or response is None or response_ns >= ended_ns:
            continue
        for key, partition, path in _fetched_partitions(request, response):
            committed_ns = pending.commit_times_ns.get(key)
            if committed_ns is None or committed_ns >= request_ns:
                continue
            reporter.count_judged()
            if partition.error_code != _UNSTABLE_OFFSET_COMMIT:
                found = f"error {partition.error_code}, before the end of a transaction"
                reporter.report_violation(
                    Side.BROKER, found, path=f"{path}.error_code", retained=fetch
                )
