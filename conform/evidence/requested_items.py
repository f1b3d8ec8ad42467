"""
The items that a response must cover, by the items in its request.

A field path leads to the names of items in a message: `topics[name].partitions[partition_index]`
gives pairs of topic and partition. `[a|b]` is the first non-null field, `[a,b]` both, `[]` a plain
value, `[#]` the position; a list without brackets adds nothing to the name. `+` joins paths.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple, TypeAlias

from dissector.protocol.facts import NO_ID

Name: TypeAlias = tuple[Any, ...]


class Cover(NamedTuple):
    """
    Which items of a response correspond to which items of its request.

    Attributes:
        asked: Field path in the request; a list that is null requests all items.
        told: Field path in the response.
        is_part: Whether the response may omit items.
        empty_is_all: Whether an empty list requests all items, too.
    """

    asked: str
    told: str
    is_part: bool = False
    empty_is_all: bool = False


_TOPICS = "topics[name].partitions[partition_index]"
_COMMITTED = "topics[name|topic_id].partitions[partition_index]"
_IDS = "topics[topic_id].partitions[partition]", "results[topic_id].partitions[partition]"
_MEMBERS = "members[member_id,group_instance_id]"
_RAFT = "topics[topic_name].partitions[partition_index]"
_RESOURCES = "resources[resource_type,resource_name]", "responses[resource_type,resource_name]"

COVERS: Mapping[str, Cover] = {
    "Produce": Cover(
        "topic_data[name|topic_id].partition_data[index]",
        "responses[name|topic_id].partition_responses[index]",
    ),
    "Fetch": Cover(
        "topics[topic|topic_id].partitions[partition]",
        "responses[topic|topic_id].partitions[partition_index]",
    ),
    "ListOffsets": Cover(_TOPICS, _TOPICS),
    "OffsetCommit": Cover(_COMMITTED, _COMMITTED),
    "LeaveGroup": Cover(_MEMBERS, _MEMBERS),
    "DescribeGroups": Cover("groups[]", "groups[group_id]"),
    "CreateTopics": Cover("topics[name]", "topics[name]"),
    "DeleteTopics": Cover("topics[name|topic_id]+topic_names[]", "responses[name|topic_id]"),
    "DeleteRecords": Cover(_TOPICS, _TOPICS),
    "OffsetForLeaderEpoch": Cover(
        "topics[topic].partitions[partition]", "topics[topic].partitions[partition]"
    ),
    "AddPartitionsToTxn": Cover(
        "v3_and_below_topics[name].partitions[]"
        "+transactions[transactional_id].topics[name].partitions[]",
        "results_by_topic_v3_and_below[name].results_by_partition[partition_index]"
        "+results_by_transaction[transactional_id].topic_results[name]"
        ".results_by_partition[partition_index]",
    ),
    "WriteTxnMarkers": Cover(
        "markers[producer_id].topics[name].partition_indexes[]",
        "markers[producer_id].topics[name].partitions[partition_index]",
    ),
    "TxnOffsetCommit": Cover(_COMMITTED, _COMMITTED),
    "CreateAcls": Cover("creations[#]", "results[#]"),
    "DeleteAcls": Cover("filters[#]", "filter_results[#]"),
    "DescribeConfigs": Cover(_RESOURCES[0], "results[resource_type,resource_name]"),
    "AlterConfigs": Cover(*_RESOURCES),
    "AlterReplicaLogDirs": Cover(
        "dirs.topics[name].partitions[]", "results[topic_name].partitions[partition_index]"
    ),
    "DescribeLogDirs": Cover(
        "topics[topic].partitions[]", "results.topics[name].partitions[partition_index]", True
    ),
    "CreatePartitions": Cover("topics[name]", "results[name]"),
    "DeleteGroups": Cover("groups_names[]", "results[group_id]"),
    "ElectLeaders": Cover(
        "topic_partitions[topic].partitions[]",
        "replica_election_results[topic].partition_result[partition_id]",
    ),
    "IncrementalAlterConfigs": Cover(*_RESOURCES),
    "AlterPartitionReassignments": Cover(_TOPICS, "responses[name].partitions[partition_index]"),
    "ListPartitionReassignments": Cover("topics[name].partition_indexes[]", _TOPICS, True),
    "OffsetDelete": Cover(_TOPICS, _TOPICS),
    "DescribeUserScramCredentials": Cover("users[name]", "results[user]", empty_is_all=True),
    "AlterUserScramCredentials": Cover("deletions[name]+upsertions[name]", "results[user]"),
    "Vote": Cover(_RAFT, _RAFT),
    "BeginQuorumEpoch": Cover(_RAFT, _RAFT),
    "EndQuorumEpoch": Cover(_RAFT, _RAFT),
    "DescribeQuorum": Cover(_RAFT, _RAFT),
    "DescribeProducers": Cover("topics[name].partition_indexes[]", _TOPICS),
    "DescribeTransactions": Cover("transactional_ids[]", "transaction_states[transactional_id]"),
    "ConsumerGroupDescribe": Cover("group_ids[]", "groups[group_id]"),
    "DescribeTopicPartitions": Cover("topics[name]", "topics[name]", True, True),
    "ShareGroupDescribe": Cover("group_ids[]", "groups[group_id]"),
    "ShareAcknowledge": Cover(
        "topics[topic_id].partitions[partition_index]",
        "responses[topic_id].partitions[partition_index]",
    ),
    "InitializeShareGroupState": Cover(*_IDS),
    "ReadShareGroupState": Cover(*_IDS),
    "WriteShareGroupState": Cover(*_IDS),
    "DeleteShareGroupState": Cover(*_IDS),
    "ReadShareGroupStateSummary": Cover(*_IDS),
    "StreamsGroupDescribe": Cover("group_ids[]", "groups[group_id]"),
    "DescribeShareGroupOffsets": Cover("groups[group_id]", "groups[group_id]"),
    "AlterShareGroupOffsets": Cover(
        "topics[topic_name].partitions[partition_index]",
        "responses[topic_name].partitions[partition_index]",
    ),
    "DeleteShareGroupOffsets": Cover("topics[topic_name]", "responses[topic_name]"),
}
"""By API. Metadata, FindCoordinator and OffsetFetch have rules of their own (M01, M05, G08)."""

_STEP = re.compile(r"(\w+)(?:\[([^]]*)\])?")


@cache
def _steps(way: str) -> tuple[tuple[str, str | None], ...]:
    return tuple((m[1], m[2]) for m in _STEP.finditer(way))


def names(body: Any, ways: str, known: frozenset[Any] = frozenset()) -> set[Name] | None:
    """
    Return the names in a body; None where a list is null, and so requests all items.

    Args:
        body: The body of a request or a response.
        ways: Field paths joined by `+`; those with a list that the version lacks are skipped.
        known: Preferred names, where an item has several.
    """
    found: set[Name] = set()
    for way in ways.split("+"):
        steps = _steps(way)
        if steps[0][0] not in body:
            continue
        if body[steps[0][0]] is None:
            return None
        found.update(_walk(body, steps, (), known))
    return found


def _walk(
    body: Any, steps: tuple[tuple[str, str | None], ...], name: Name, known: frozenset[Any]
) -> Iterator[Name]:
    if not steps:
        yield name
        return
    (list_name, key), *rest = steps
    for at, each in enumerate(body.get(list_name) or ()):
        yield from _walk(each, tuple(rest), (*name, *_key(each, at, key, known)), known)


def _key(each: Any, at: int, key: str | None, known: frozenset[Any]) -> Name:
    if key is None:
        return ()
    if key == "":
        return (each,)
    if key == "#":
        return (at,)
    if "|" in key:
        values = [v for n in key.split("|") if (v := each.get(n)) not in (None, NO_ID)]
        return (next((v for v in values if v in known), values[0] if values else None),)
    return tuple(each.get(n) for n in key.split(","))
