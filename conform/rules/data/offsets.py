"""G, last part: the offsets of a group."""

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
    """Return how a message names a topic."""
    found: str | UUID = topic.topic_id if topic.get("name") is None else topic.name
    return found


def _groups(body: Container) -> list[tuple[Container, str]]:
    """Return the groups of an OffsetFetch message, and the path of each."""
    if "groups" in body:
        return [(each, f"groups[{index}].") for index, each in enumerate(body.groups)]
    return [(body, "")]


def _fetched_partitions(
    asked: Container, told: Container
) -> Iterator[tuple[GroupPartition, Container, str]]:
    """Yield the partitions of an answer that have no error, and where they stand."""
    for index, (group, path) in enumerate(_groups(told)):
        name = group.get("group_id", asked.get("group_id"))
        if name is None or index >= len(_groups(asked)):
            continue
        for at, topic in enumerate(group.topics):
            for number, partition in enumerate(topic.partitions):
                place = name, _topic_key(topic), partition.partition_index
                yield place, partition, f"{path}topics[{at}].partitions[{number}]"


@dataclass(frozen=True, slots=True)
class _Commit:
    """What was committed last, by whom, and when that was answered."""

    offset: int
    metadata: str
    response_ns: int


class _Commits(BoundedDict[GroupPartition, _Commit]):
    """
    What members of classic groups committed on this connection since they joined.

    Attributes:
        groups: Those that were joined on it: in others the broker moves partitions at any time.
    """

    def __init__(self) -> None:
        super().__init__(_MAX_OFFSETS)
        self.groups: BoundedDict[str, None] = BoundedDict(_MAX_TRANSACTIONS)

    def forget(self, group: str) -> None:
        """Forget the commits of a group: others may commit in it."""
        for place in [each for each in self if each[0] == group]:
            del self[place]


@rule(
    "G07",
    "A committed offset comes back with its metadata",
    Severity.ERROR,
    source="OffsetMetadataManager; OffsetCommitRequest.json, OffsetFetchResponse.json",
    asks="What a member of a generation committed is what it fetches on the same connection on "
    "which it joined, until it joins again.",
    example="offset 42 with metadata 'here' comes back with empty metadata",
    apis=("JoinGroup", "OffsetCommit", "OffsetFetch"),
)
def committed_offset_returned(turn: Observation, say: Reporter) -> None:
    """Note commits; compare them with what is fetched."""
    asked, told, commits = turn.request_body, turn.response_body, turn.connection.state(_Commits)
    if asked is None or told is None or not turn.is_complete:
        say.count_unjudged(turn.unreadable_reason() or turn.connection.incomplete_reason)
        commits.clear()
    elif turn.exchange.api == "JoinGroup":
        commits.forget(asked.group_id)
        commits.groups[asked.group_id] = None
    elif turn.exchange.api == "OffsetCommit":
        _record_commits(turn, commits, asked, told)
    else:
        _compare_with_commits(turn, say, commits, asked, told)


def _record_commits(
    turn: Observation, commits: _Commits, asked: Container, told: Container
) -> None:
    """Note what was committed without an error; what has one may or may not be committed."""
    errors = {
        (_topic_key(topic), each.partition_index): each.error_code
        for topic in told.topics
        for each in topic.partitions
    }
    is_member = asked.get("generation_id_or_member_epoch", -1) >= 0
    is_member = is_member and asked.group_id in commits.groups
    for topic in asked.topics:
        for each in topic.partitions:
            place = asked.group_id, _topic_key(topic), each.partition_index
            commits.pop(place, None)
            is_taken = errors.get(place[1:]) == 0
            if is_taken and is_member and turn.exchange.response_time_ns is not None:
                metadata = each.committed_metadata or ""
                commits[place] = _Commit(
                    each.committed_offset, metadata, turn.exchange.response_time_ns
                )


def _compare_with_commits(
    turn: Observation, say: Reporter, commits: _Commits, asked: Container, told: Container
) -> None:
    for place, partition, path in _fetched_partitions(asked, told):
        commit = commits.get(place)
        if commit is None or partition.error_code:
            continue
        if commit.response_ns >= (turn.exchange.request_time_ns or 0):
            continue
        say.count_judged()
        got = partition.committed_offset, partition.metadata or ""
        if got != (commit.offset, commit.metadata):
            found = f"offset {got[0]} with {got[1]!r}, committed was {commit.offset} with "
            say.report_violation(Side.BROKER, f"{found}{commit.metadata!r}", path=path)


@rule(
    "G08",
    "OffsetFetch tells of the groups, topics and partitions that were asked for",
    Severity.ERROR,
    source="OffsetFetchRequest.json: null topics are all (v2+), groups (v8+); KIP-709",
    asks="Each group that was asked for is told of once; where topics were named, each of their "
    "partitions is, and no other.",
    example="two groups are asked for, one is told of",
    apis=("OffsetFetch",),
)
def requested_partitions(turn: Observation, say: Reporter) -> None:
    """Compare groups and partitions of request and response."""
    asked, told = turn.request_body, turn.response_body
    if asked is None or told is None:
        say.count_unjudged(turn.unreadable_reason())
        return
    say.count_judged()
    wanted, given = _groups(asked), _groups(told)
    names = [each.get("group_id", "") for each, _ in wanted]
    if (turn.version or 0) >= _FIRST_OF_GROUPS:
        there = [each.group_id for each, _ in given]
        if sorted(set(names)) != sorted(there):
            found = f"{len(there)} groups are told of, of {len(set(names))} that were asked for"
            say.report_violation(Side.BROKER, found, path="groups")
            return
    by_name = dict(zip(names, wanted, strict=True))
    for group, path in given:
        asked_group, _ = by_name[group.get("group_id", names[0])]
        if asked_group.topics is None or group.get("error_code"):
            continue
        due = {(_topic_key(t), p) for t in asked_group.topics for p in t.partition_indexes}
        there_are = {(_topic_key(t), p.partition_index) for t in group.topics for p in t.partitions}
        if due != there_are:
            found = f"{len(there_are)} partitions are told of, not the {len(due)} asked for"
            say.report_violation(Side.BROKER, found, path=f"{path}topics")


@dataclass(slots=True)
class _PendingOffsets:
    """Offsets that a transaction has committed, where, and who asked for stable ones meanwhile."""

    broker: str
    places: dict[GroupPartition, int] = field(default_factory=dict)
    fetches: list[Observation] = field(default_factory=list)


class _Transactions(BoundedDict[tuple[str, int, int], _PendingOffsets]):
    """By the client's host, producer id and epoch: other clusters may give the same."""

    def __init__(self) -> None:
        super().__init__(_MAX_TRANSACTIONS)


@rule(
    "G09",
    "Who asks for stable offsets is told of those that a transaction may still change",
    Severity.ERROR,
    source="KIP-447; OffsetMetadataManager.fetchOffsets (hasPendingTransactionalOffsets)",
    asks="OffsetFetch with require_stable is answered with UNSTABLE_OFFSET_COMMIT (88) between "
    "TxnOffsetCommit and EndTxn of a transaction that ends without an error.",
    example="an offset is told, and the transaction that changes it is committed afterwards",
    apis=("TxnOffsetCommit", "OffsetFetch", "EndTxn"),
)
def stable_offsets(turn: Observation, say: Reporter) -> None:
    """Keep what may be unstable until the transaction ends: only that proves that it was open."""
    asked, told = turn.request_body, turn.response_body
    if asked is None or told is None:
        say.count_unjudged(turn.unreadable_reason())
        return
    state, broker = turn.capture_state.state(_Transactions), turn.connection.broker.address
    if "committed" in asked:
        pending = state.pop(_producer_key(turn, asked), None)
        if pending is not None and not told.error_code:
            _judge_pending(turn, say, pending)
    elif "producer_id" in asked:
        key = _producer_key(turn, asked)
        pending = state.get(key) or _PendingOffsets(broker)
        for topic in told.topics:
            for each in topic.partitions:
                if not each.error_code:
                    place = asked.group_id, _topic_key(topic), each.partition_index
                    pending.places[place] = turn.exchange.response_time_ns or 0
        state[key] = pending
    elif asked.get("require_stable"):
        for pending in state.values():
            is_asked = any(p in pending.places for p, _, _ in _fetched_partitions(asked, told))
            if is_asked and pending.broker == broker and len(pending.fetches) < _MAX_FETCHES:
                pending.fetches.append(turn.detach())


def _producer_key(turn: Observation, asked: Container) -> tuple[str, int, int]:
    host = turn.connection.client.address.rpartition(":")[0]
    return host, asked.producer_id, asked.producer_epoch


def _judge_pending(end: Observation, say: Reporter, pending: _PendingOffsets) -> None:
    """Judge the fetches between the commit of offsets and the end of the transaction."""
    ended_ns = end.exchange.request_time_ns or 0
    for fetch in pending.fetches:
        asked, told = fetch.request_body, fetch.response_body
        sent_ns, told_ns = fetch.exchange.request_time_ns or 0, fetch.exchange.response_time_ns or 0
        if asked is None or told is None or told_ns >= ended_ns:
            continue
        for place, partition, path in _fetched_partitions(asked, told):
            committed_ns = pending.places.get(place)
            if committed_ns is None or committed_ns >= sent_ns:
                continue
            say.count_judged()
            if partition.error_code != _UNSTABLE_OFFSET_COMMIT:
                found = f"error {partition.error_code}, while a transaction had yet to end"
                say.report_violation(Side.BROKER, found, path=f"{path}.error_code", retained=fetch)
