"""Probes with unknown names: topics, topic ids, groups, members, transactions."""

from __future__ import annotations

from typing import Any, NamedTuple
from uuid import UUID, uuid4

from conform.probe.probe_fixtures import NO_ID
from conform.probe.probe_registry import ProbeContext, probe
from conform.probe.probe_reporter import ProbeReporter
from conform.probe.probe_target import NotJudged
from conform.probe.record_fixtures import FETCH_PARTITION, PRODUCE_PARTITION, encode_batch
from replay.client.cluster import CoordinatorType

_UNKNOWN_TOPIC = "UNKNOWN_TOPIC_OR_PARTITION"
_UNKNOWN_MEMBER = "no-such-member"


class _Case(NamedTuple):
    """
    A request, and the expected error.

    Attributes:
        api: Name of the API.
        since: The first version to use.
        until: The last version to use.
        fields: Fields of the request.
        path: Path of the error in the response.
        errors: The expected errors, any of which is right.
    """

    api: str
    since: int
    until: int
    fields: dict[str, Any]
    path: str
    errors: tuple[str, ...]


_ALL_VERSIONS = 0, 32767


async def _check_cases(
    cases: list[_Case], probed: ProbeContext, say: ProbeReporter, node: int | None = None
) -> None:
    for case in cases:
        for version in probed.target.versions(case.api, case.since, case.until):
            said = await probed.target.request(case.api, case.fields, version, node)
            say.check_error(said, case.path, *case.errors)


@probe(
    "P10",
    "A topic that there is not is answered with UNKNOWN_TOPIC_OR_PARTITION",
    source="KafkaApis: handleTopicMetadataRequest, handleListOffsetRequest and the like",
    asks="Error 3 beside the name that was asked for, and no topic is made.",
    example="ListOffsets of an unknown topic closes the connection",
)
async def unknown_topics(probed: ProbeContext, say: ProbeReporter) -> None:
    """Send requests about a topic that does not exist."""
    name = probed.fixtures.absent_name("no-such-topic")
    partition = {"partition_index": 0, "partition": 0, "current_leader_epoch": -1, "timestamp": -1}
    here = {"name": name, "topic": name, "topic_id": NO_ID, "partitions": [partition]}
    of_partition = "topics[0].partitions[0].error_code"
    asked = {"topics": [here], "allow_auto_topic_creation": False}
    fetched = {"replica_id": -1, "topics": [here], "session_epoch": -1}
    epochs = {"replica_id": -1, "topics": [here]}
    listed = {"topics": [here], "response_partition_limit": 5}
    producers = {"topics": [{**here, "partition_indexes": [0]}]}
    cases = [
        _Case(
            "ListOffsets",
            1,
            32767,
            {"replica_id": -1, "topics": [here]},
            of_partition,
            (_UNKNOWN_TOPIC,),
        ),
        _Case("Fetch", 0, 12, fetched, f"{FETCH_PARTITION}.error_code", (_UNKNOWN_TOPIC,)),
        _Case("OffsetForLeaderEpoch", *_ALL_VERSIONS, epochs, of_partition, (_UNKNOWN_TOPIC,)),
        _Case("DescribeProducers", *_ALL_VERSIONS, producers, of_partition, (_UNKNOWN_TOPIC,)),
        _Case(
            "DescribeTopicPartitions",
            *_ALL_VERSIONS,
            listed,
            "topics[0].error_code",
            (_UNKNOWN_TOPIC,),
        ),
        _Case("Metadata", 4, 32767, asked, "topics[0].error_code", (_UNKNOWN_TOPIC,)),
    ]
    if probed.target.allow_writes:
        probed.fixtures.topic_name("no-such-topic")  # a broker may create it
        data = {**here, "partition_data": [{"index": 0, "records": encode_batch(b"lost")}]}
        produced = {"acks": -1, "timeout_ms": 1000, "topic_data": [data]}
        cases.append(
            _Case("Produce", 3, 12, produced, f"{PRODUCE_PARTITION}.error_code", (_UNKNOWN_TOPIC,))
        )
    await _check_cases(cases, probed, say)


@probe(
    "P11",
    "A topic id that there is not is answered with UNKNOWN_TOPIC_ID",
    source="KIP-516: FetchRequest.json v13+, MetadataRequest.json v12+, ProduceRequest.json v13+",
    asks="Error 100 beside the id that was asked for.",
    example="Fetch v13 of an unknown id is answered with no topics and no error",
)
async def unknown_topic_ids(probed: ProbeContext, say: ProbeReporter) -> None:
    """Send requests about a topic id that does not exist."""
    unknown = UUID(int=uuid4().int)
    here = {"name": None, "topic_id": unknown, "partitions": [{"partition": 0}]}
    fetched = {"replica_id": -1, "topics": [here], "session_epoch": -1}
    asked = {"topics": [here], "allow_auto_topic_creation": False}
    wanted = ("UNKNOWN_TOPIC_ID",)
    cases = [
        _Case("Metadata", 12, 32767, asked, "topics[0].error_code", wanted),
        _Case("Fetch", 13, 32767, fetched, f"{FETCH_PARTITION}.error_code", wanted),
    ]
    if probed.target.allow_writes:
        data = {**here, "partition_data": [{"index": 0, "records": encode_batch(b"lost")}]}
        produced = {"acks": -1, "timeout_ms": 1000, "topic_data": [data]}
        cases.append(
            _Case("Produce", 13, 32767, produced, f"{PRODUCE_PARTITION}.error_code", wanted)
        )
    if not any(probed.target.versions(case.api, case.since) for case in cases):
        raise NotJudged("the broker offers no version that has topic ids")
    await _check_cases(cases, probed, say)


@probe(
    "P12",
    "A group that there is not, and a member that it has not, are told so",
    source="GroupCoordinatorService, GroupMetadataManager; KIP-848, KIP-1043",
    asks="State Dead or GROUP_ID_NOT_FOUND where a group is described, no offsets where they are "
    "fetched, UNKNOWN_MEMBER_ID or ILLEGAL_GENERATION where a stranger speaks.",
    example="Heartbeat of an unknown member is answered with error 0",
    writes=True,
)
async def unknown_groups(probed: ProbeContext, say: ProbeReporter) -> None:
    """Send requests about a group that does not exist, and as an unknown member."""
    group = probed.fixtures.absent_name("no-such-group")
    node = await probed.target.coordinator(CoordinatorType.GROUP, group)
    member = {"group_id": group, "generation_id": 1, "member_id": _UNKNOWN_MEMBER}
    stranger = ("UNKNOWN_MEMBER_ID",)
    leaving = {**member, "members": [{"member_id": _UNKNOWN_MEMBER}]}
    join = {
        **member,
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 10_000,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b""}],
    }
    sync = {**member, "protocol_type": "consumer", "protocol_name": "range"}
    offset = {"partition_index": 0, "committed_offset": 0, "committed_leader_epoch": -1}
    mine = await probed.fixtures.topic("forms")
    topic = {"name": mine.name, "topic_id": mine.topic_id, "partitions": [offset]}
    commit = {**member, "generation_id_or_member_epoch": 1, "topics": [topic]}
    of_partition = "topics[0].partitions[0].error_code"
    beat = {"group_id": group, "member_id": str(uuid4()), "member_epoch": 5}
    nowhere = ("UNKNOWN_MEMBER_ID", "GROUP_ID_NOT_FOUND")
    missing = ("GROUP_ID_NOT_FOUND",)
    illegal = ("ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "GROUP_ID_NOT_FOUND")
    named = {"group_ids": [group], "groups": [group]}
    cases = [
        _Case("Heartbeat", *_ALL_VERSIONS, member, "error_code", stranger),
        _Case("SyncGroup", *_ALL_VERSIONS, sync, "error_code", stranger),
        _Case("JoinGroup", *_ALL_VERSIONS, join, "error_code", stranger),
        _Case("LeaveGroup", 0, 2, leaving, "error_code", stranger),
        _Case("LeaveGroup", 3, 32767, leaving, "members[0].error_code", stranger),
        _Case("OffsetCommit", 1, 8, commit, of_partition, illegal),
        _Case(
            "DeleteGroups",
            *_ALL_VERSIONS,
            {"groups_names": [group]},
            "results[0].error_code",
            missing,
        ),
        _Case("ConsumerGroupHeartbeat", *_ALL_VERSIONS, beat, "error_code", nowhere),
        _Case(
            "ConsumerGroupDescribe",
            *_ALL_VERSIONS,
            {"group_ids": [group]},
            "groups[0].error_code",
            missing,
        ),
        _Case("DescribeGroups", 6, 32767, named, "groups[0].error_code", missing),
    ]
    await _check_cases(cases, probed, say, node)
    await _check_described_groups(probed, say, group, node)
    await _check_no_offsets(probed, say, group, node)


async def _check_described_groups(
    probed: ProbeContext, say: ProbeReporter, group: str, node: int
) -> None:
    for version in probed.target.versions("DescribeGroups", until=5):
        said = await probed.target.request("DescribeGroups", {"groups": [group]}, version, node)
        if say.check_error(said, "groups[0].error_code", "NONE"):
            state = said.field("groups[0].group_state")
            path = "groups[0].group_state"
            say.check(state == "Dead", f"{said}: state {state!r}, not 'Dead'", said, path)


async def _check_no_offsets(
    probed: ProbeContext, say: ProbeReporter, group: str, node: int
) -> None:
    """Fetch offsets of a group without commits: there are none, and that is no error."""
    topic = {"name": group, "topic_id": UUID(int=9), "partition_indexes": [0]}
    fields = {"group_id": group, "topics": [topic]}
    fields["groups"] = [{"group_id": group, "topics": [topic]}]
    for version in probed.target.versions("OffsetFetch", until=9):
        said = await probed.target.request("OffsetFetch", fields, version, node)
        path = "groups[0].topics[0].partitions[0]" if version >= 8 else "topics[0].partitions[0]"
        # Before v2 a broker returned UNKNOWN_TOPIC_OR_PARTITION, in v0 from ZooKeeper.
        if version > 0 and say.check_error(said, f"{path}.error_code", "NONE"):
            offset = said.field(f"{path}.committed_offset")
            say.check(offset == -1, f"{said}: offset {offset}, not -1", said, path)


@probe(
    "P13",
    "A transactional id that nobody began with is told so",
    source="TransactionCoordinator; KIP-664",
    asks="INVALID_PRODUCER_ID_MAPPING from who changes it, TRANSACTIONAL_ID_NOT_FOUND from who "
    "describes it.",
    example="EndTxn of an unknown transactional id is answered with error 0",
    writes=True,
)
async def unknown_transactional_ids(probed: ProbeContext, say: ProbeReporter) -> None:
    """End, add to and describe a transaction that was never begun."""
    name = probed.fixtures.absent_name("no-such-transaction")
    node = await probed.target.coordinator(CoordinatorType.TRANSACTION, name)
    who = {"transactional_id": name, "producer_id": 2**40, "producer_epoch": 0}
    wrong = ("INVALID_PRODUCER_ID_MAPPING",)
    described = {"transactional_ids": [name]}
    state = "transaction_states[0].error_code"
    cases = [
        _Case("EndTxn", *_ALL_VERSIONS, {**who, "committed": True}, "error_code", wrong),
        _Case("AddOffsetsToTxn", *_ALL_VERSIONS, {**who, "group_id": name}, "error_code", wrong),
        _Case(
            "DescribeTransactions",
            *_ALL_VERSIONS,
            described,
            state,
            ("TRANSACTIONAL_ID_NOT_FOUND",),
        ),
    ]
    await _check_cases(cases, probed, say, node)
