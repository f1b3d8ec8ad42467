"""
The items that a response must contain, by the items of its request.

A path of lists selects the keys of items in a message: `topics[name].partitions[partition_index]`
yields pairs of topic and partition. The brackets contain the key of an item: `[a|b]` is the first
of the fields that is not null, `[a,b]` both, `[]` the value itself, `[#]` the position; a list
without brackets adds nothing to the key. `+` joins paths.
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
    Pairs items of a response with items of its request.

    Attributes:
        request_items: Path in the request; a null list requests all items.
        response_items: Path in the response.
        may_be_partial: Whether the response may omit items.
        empty_means_all: Whether an empty list requests all items as well.
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
"""By API. Metadata, FindCoordinator and OffsetFetch have separate rules (M01, M05, G08)."""

_PATH_STEP = re.compile(r"(\w+)(?:\[([^]]*)\])?")


@cache
def _parse_path(path: str) -> tuple[tuple[str, str | None], ...]:
    return tuple((m[1], m[2]) for m in _PATH_STEP.finditer(path))


def item_keys(
    body: Any, paths: str, preferred: frozenset[Any] = frozenset()
) -> set[ItemKey] | None:
    """
    Return the keys of the items in a body; None if a list is null, and so requests all items.

    Args:
        body: The body of a request or a response.
        paths: Paths joined by `+`; keys with a list that the version lacks are skipped.
        preferred: Keys to prefer for an item that has several, such as name and id.
    """
    found: set[ItemKey] = set()
    for path in paths.split("+"):
        steps = _parse_path(path)
        if steps[0][0] not in body:
            continue
        if body[steps[0][0]] is None:
            return None
        found.update(_collect_keys(body, steps, (), preferred))
    return found


def _collect_keys(
    body: Any, steps: tuple[tuple[str, str | None], ...], prefix: ItemKey, preferred: frozenset[Any]
) -> Iterator[ItemKey]:
    if not steps:
        yield prefix
        return
    (list_name, fields), *rest = steps
    for index, item in enumerate(body.get(list_name) or ()):
        key = (*prefix, *_item_key(item, index, fields, preferred))
        yield from _collect_keys(item, tuple(rest), key, preferred)


def _item_key(item: Any, index: int, fields: str | None, preferred: frozenset[Any]) -> ItemKey:
    """Return the key of an item by the brackets of its list; empty without any."""
    if fields is None:
        return ()
    if fields == "":
        return (item,)
    if fields == "#":
        return (index,)
    if "|" in fields:
        values = [v for name in fields.split("|") if (v := item.get(name)) not in (None, NO_ID)]
        return (next((v for v in values if v in preferred), values[0] if values else None),)
    return tuple(item.get(name) for name in fields.split(","))
