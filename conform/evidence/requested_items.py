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

ItemKey: TypeAlias = tuple[Any, ...]


class ExpectedCoverage(NamedTuple):
    """
    Which items of a response correspond to which items of its request.

    Attributes:
        request_items: Field path in the request; a list that is null requests all items.
        response_items: Field path in the response.
        may_be_partial: Whether the response may omit items.
        empty_means_all: Whether an empty list requests all items, too.
    """

    request_items: str
    response_items: str
    may_be_partial: bool = False
    empty_means_all: bool = False


_TOPICS = "topics[name].partitions[partition_index]"
_COMMITTED = "topics[name|topic_id].partitions[partition_index]"
_IDS = "topics[topic_id].partitions[partition]", "results[topic_id].partitions[partition]"
_MEMBERS = "members[member_id,group_instance_id]"
_RAFT = "topics[topic_name].partitions[partition_index]"
_RESOURCES = "resources[resource_type,resource_name]", "responses[resource_type,resource_name]"

EXPECTED_COVERAGE: Mapping[str, ExpectedCoverage] = {
    "Produce": ExpectedCoverage(
        "topic_data[name|topic_id].partition_data[index]",
        "responses[name|topic_id].partition_responses[index]",
    ),
    "Fetch": ExpectedCoverage(
        "topics[topic|topic_id].partitions[partition]",
        "responses[topic|topic_id].partitions[partition_index]",
    ),
    "ListOffsets": ExpectedCoverage(_TOPICS, _TOPICS),
    "OffsetCommit": ExpectedCoverage(_COMMITTED, _COMMITTED),
    "LeaveGroup": ExpectedCoverage(_MEMBERS, _MEMBERS),
    "DescribeGroups": ExpectedCoverage("groups[]", "groups[group_id]"),
    "CreateTopics": ExpectedCoverage("topics[name]", "topics[name]"),
    "DeleteTopics": ExpectedCoverage(
        "topics[name|topic_id]+topic_names[]", "responses[name|topic_id]"
    ),
    "DeleteRecords": ExpectedCoverage(_TOPICS, _TOPICS),
    "OffsetForLeaderEpoch": ExpectedCoverage(
        "topics[topic].partitions[partition]", "topics[topic].partitions[partition]"
    ),
    "AddPartitionsToTxn": ExpectedCoverage(
        "v3_and_below_topics[name].partitions[]"
        "+transactions[transactional_id].topics[name].partitions[]",
        "results_by_topic_v3_and_below[name].results_by_partition[partition_index]"
        "+results_by_transaction[transactional_id].topic_results[name]"
        ".results_by_partition[partition_index]",
    ),
    "WriteTxnMarkers": ExpectedCoverage(
        "markers[producer_id].topics[name].partition_indexes[]",
        "markers[producer_id].topics[name].partitions[partition_index]",
    ),
    "TxnOffsetCommit": ExpectedCoverage(_COMMITTED, _COMMITTED),
    "CreateAcls": ExpectedCoverage("creations[#]", "results[#]"),
    "DeleteAcls": ExpectedCoverage("filters[#]", "filter_results[#]"),
    "DescribeConfigs": ExpectedCoverage(_RESOURCES[0], "results[resource_type,resource_name]"),
    "AlterConfigs": ExpectedCoverage(*_RESOURCES),
    "AlterReplicaLogDirs": ExpectedCoverage(
        "dirs.topics[name].partitions[]", "results[topic_name].partitions[partition_index]"
    ),
    "DescribeLogDirs": ExpectedCoverage(
        "topics[topic].partitions[]", "results.topics[name].partitions[partition_index]", True
    ),
    "CreatePartitions": ExpectedCoverage("topics[name]", "results[name]"),
    "DeleteGroups": ExpectedCoverage("groups_names[]", "results[group_id]"),
    "ElectLeaders": ExpectedCoverage(
        "topic_partitions[topic].partitions[]",
        "replica_election_results[topic].partition_result[partition_id]",
    ),
    "IncrementalAlterConfigs": ExpectedCoverage(*_RESOURCES),
    "AlterPartitionReassignments": ExpectedCoverage(
        _TOPICS, "responses[name].partitions[partition_index]"
    ),
    "ListPartitionReassignments": ExpectedCoverage(
        "topics[name].partition_indexes[]", _TOPICS, True
    ),
    "OffsetDelete": ExpectedCoverage(_TOPICS, _TOPICS),
    "DescribeUserScramCredentials": ExpectedCoverage(
        "users[name]", "results[user]", empty_means_all=True
    ),
    "AlterUserScramCredentials": ExpectedCoverage(
        "deletions[name]+upsertions[name]", "results[user]"
    ),
    "Vote": ExpectedCoverage(_RAFT, _RAFT),
    "BeginQuorumEpoch": ExpectedCoverage(_RAFT, _RAFT),
    "EndQuorumEpoch": ExpectedCoverage(_RAFT, _RAFT),
    "DescribeQuorum": ExpectedCoverage(_RAFT, _RAFT),
    "DescribeProducers": ExpectedCoverage("topics[name].partition_indexes[]", _TOPICS),
    "DescribeTransactions": ExpectedCoverage(
        "transactional_ids[]", "transaction_states[transactional_id]"
    ),
    "ConsumerGroupDescribe": ExpectedCoverage("group_ids[]", "groups[group_id]"),
    "DescribeTopicPartitions": ExpectedCoverage("topics[name]", "topics[name]", True, True),
    "ShareGroupDescribe": ExpectedCoverage("group_ids[]", "groups[group_id]"),
    "ShareAcknowledge": ExpectedCoverage(
        "topics[topic_id].partitions[partition_index]",
        "responses[topic_id].partitions[partition_index]",
    ),
    "InitializeShareGroupState": ExpectedCoverage(*_IDS),
    "ReadShareGroupState": ExpectedCoverage(*_IDS),
    "WriteShareGroupState": ExpectedCoverage(*_IDS),
    "DeleteShareGroupState": ExpectedCoverage(*_IDS),
    "ReadShareGroupStateSummary": ExpectedCoverage(*_IDS),
    "StreamsGroupDescribe": ExpectedCoverage("group_ids[]", "groups[group_id]"),
    "DescribeShareGroupOffsets": ExpectedCoverage("groups[group_id]", "groups[group_id]"),
    "AlterShareGroupOffsets": ExpectedCoverage(
        "topics[topic_name].partitions[partition_index]",
        "responses[topic_name].partitions[partition_index]",
    ),
    "DeleteShareGroupOffsets": ExpectedCoverage("topics[topic_name]", "responses[topic_name]"),
}
"""By API. Metadata, FindCoordinator and OffsetFetch have rules of their own (M01, M05, G08)."""

_PATH_STEP = re.compile(r"(\w+)(?:\[([^]]*)\])?")


@cache
def _parse_path(path: str) -> tuple[tuple[str, str | None], ...]:
    return tuple((m[1], m[2]) for m in _PATH_STEP.finditer(path))


def item_keys(body: Any, paths: str, known: frozenset[Any] = frozenset()) -> set[ItemKey] | None:
    """
    Return the names in a body; None where a list is null, and so requests all items.

    Args:
        body: The body of a request or a response.
        paths: Field paths joined by `+`; those with a list that the version lacks are skipped.
        known: Preferred names, where an item has several.
    """
    found: set[ItemKey] = set()
    for way in paths.split("+"):
        steps = _parse_path(way)
        if steps[0][0] not in body:
            continue
        if body[steps[0][0]] is None:
            return None
        found.update(_collect_keys(body, steps, (), known))
    return found


def _collect_keys(
    body: Any, steps: tuple[tuple[str, str | None], ...], name: ItemKey, known: frozenset[Any]
) -> Iterator[ItemKey]:
    if not steps:
        yield name
        return
    (list_name, key), *rest = steps
    for at, each in enumerate(body.get(list_name) or ()):
        yield from _collect_keys(
            each, tuple(rest), (*name, *_extend_key(each, at, key, known)), known
        )


def _extend_key(each: Any, at: int, key: str | None, known: frozenset[Any]) -> ItemKey:
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
