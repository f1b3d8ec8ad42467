"""Probes with unknown names: topics, topic ids, groups, members, transactions."""

from __future__ import annotations

from typing import Any, NamedTuple
from uuid import UUID, uuid4

from cluster.client.cluster import CoordinatorType
from conform.probe.probe_fixtures import NO_ID
from conform.probe.probe_registry import ProbeContext, probe
from conform.probe.probe_reporter import ProbeReporter
from conform.probe.probe_target import NotJudged
from conform.probe.record_fixtures import FETCH_PARTITION, PRODUCE_PARTITION, encode_batch

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
        errors: The expected errors; any one of them is right.
    """

    api: str
    since: int
    until: int
    fields: dict[str, Any]
    path: str
    errors: tuple[str, ...]


_ALL_VERSIONS = 0, 32767


async def _check_cases(
    cases: list[_Case], context: ProbeContext, reporter: ProbeReporter, node: int | None = None
) -> None:
    for case in cases:
        for version in context.target.versions(case.api, case.since, case.until):
            exchange = await context.target.request(case.api, case.fields, version, node)
            reporter.check_error(exchange, case.path, *case.errors)


@probe(
    "P10",
    "Unknown topic not answered with UNKNOWN_TOPIC_OR_PARTITION",
    source="KafkaApis: handleTopicMetadataRequest, handleListOffsetRequest and the like",
    asks="Error 3 for the requested name, and no topic is created.",
    example="ListOffsets of an unknown topic closes the connection",
)
async def probe_unknown_topics(context: ProbeContext, reporter: ProbeReporter) -> None:
    """Send requests about a topic that does not exist."""
    name = context.fixtures.absent_name("no-such-topic")
    partition = {"partition_index": 0, "partition": 0, "current_leader_epoch": -1, "timestamp": -1}
    topic = {"name": name, "topic": name, "topic_id": NO_ID, "partitions": [partition]}
    of_partition = "topics[0].partitions[0].error_code"
    metadata = {"topics": [topic], "allow_auto_topic_creation": False}
    fetched = {"replica_id": -1, "topics": [topic], "session_epoch": -1}
    epochs = {"replica_id": -1, "topics": [topic]}
    listed = {"topics": [topic], "response_partition_limit": 5}
    producers = {"topics": [{**topic, "partition_indexes": [0]}]}
    cases = [
        _Case(
            "ListOffsets",
            1,
            32767,
            {"replica_id": -1, "topics": [topic]},
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
        _Case("Metadata", 4, 32767, metadata, "topics[0].error_code", (_UNKNOWN_TOPIC,)),
    ]
    if context.target.allow_writes:
        context.fixtures.topic_name("no-such-topic")  # a broker may create it
        data = {**topic, "partition_data": [{"index": 0, "records": encode_batch(b"lost")}]}
        produced = {"acks": -1, "timeout_ms": 1000, "topic_data": [data]}
        cases.append(
            _Case("Produce", 3, 12, produced, f"{PRODUCE_PARTITION}.error_code", (_UNKNOWN_TOPIC,))
        )
    await _check_cases(cases, context, reporter)


@probe(
    "P11",
    "Unknown topic id not answered with UNKNOWN_TOPIC_ID",
    source="KIP-516: FetchRequest.json v13+, MetadataRequest.json v12+, ProduceRequest.json v13+",
    asks="Error 100 for the requested id.",
    example="Fetch v13 of an unknown id is answered with no topics and no error",
)
async def probe_unknown_topic_ids(context: ProbeContext, reporter: ProbeReporter) -> None:
    """Send requests about a topic id that does not exist."""
    unknown = UUID(int=uuid4().int)
    topic = {"name": None, "topic_id": unknown, "partitions": [{"partition": 0}]}
    fetched = {"replica_id": -1, "topics": [topic], "session_epoch": -1}
    metadata = {"topics": [topic], "allow_auto_topic_creation": False}
    expected = ("UNKNOWN_TOPIC_ID",)
    cases = [
        _Case("Metadata", 12, 32767, metadata, "topics[0].error_code", expected),
        _Case("Fetch", 13, 32767, fetched, f"{FETCH_PARTITION}.error_code", expected),
    ]
    if context.target.allow_writes:
        data = {**topic, "partition_data": [{"index": 0, "records": encode_batch(b"lost")}]}
        produced = {"acks": -1, "timeout_ms": 1000, "topic_data": [data]}
        cases.append(
            _Case("Produce", 13, 32767, produced, f"{PRODUCE_PARTITION}.error_code", expected)
        )
    if not any(context.target.versions(case.api, case.since) for case in cases):
        raise NotJudged("the broker offers no version that has topic ids")
    await _check_cases(cases, context, reporter)


@probe(
    "P12",
    "Unknown group or member not rejected",
    source="GroupCoordinatorService, GroupMetadataManager; KIP-848, KIP-1043",
    asks="State Dead or GROUP_ID_NOT_FOUND where a group is described, no offsets where they are "
    "fetched, UNKNOWN_MEMBER_ID or ILLEGAL_GENERATION for the requests of an unknown member.",
    example="Heartbeat of an unknown member is answered with error 0",
    writes=True,
)
async def probe_unknown_groups(context: ProbeContext, reporter: ProbeReporter) -> None:
    """Send requests about a group that does not exist, and as an unknown member."""
    group = context.fixtures.absent_name("no-such-group")
    node = await context.target.coordinator(CoordinatorType.GROUP, group)
    member = {"group_id": group, "generation_id": 1, "member_id": _UNKNOWN_MEMBER}
    unknown_member = ("UNKNOWN_MEMBER_ID",)
    leave = {**member, "members": [{"member_id": _UNKNOWN_MEMBER}]}
    join = {
        **member,
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 10_000,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b""}],
    }
    sync = {**member, "protocol_type": "consumer", "protocol_name": "range"}
    offset = {"partition_index": 0, "committed_offset": 0, "committed_leader_epoch": -1}
    existing = await context.fixtures.topic("forms")
    topic = {"name": existing.name, "topic_id": existing.topic_id, "partitions": [offset]}
    commit = {**member, "generation_id_or_member_epoch": 1, "topics": [topic]}
    of_partition = "topics[0].partitions[0].error_code"
    heartbeat = {"group_id": group, "member_id": str(uuid4()), "member_epoch": 5}
    unknown = ("UNKNOWN_MEMBER_ID", "GROUP_ID_NOT_FOUND")
    not_found = ("GROUP_ID_NOT_FOUND",)
    rejected = ("ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "GROUP_ID_NOT_FOUND")
    described = {"group_ids": [group], "groups": [group]}
    cases = [
        _Case("Heartbeat", *_ALL_VERSIONS, member, "error_code", unknown_member),
        _Case("SyncGroup", *_ALL_VERSIONS, sync, "error_code", unknown_member),
        _Case("JoinGroup", *_ALL_VERSIONS, join, "error_code", unknown_member),
        _Case("LeaveGroup", 0, 2, leave, "error_code", unknown_member),
        _Case("LeaveGroup", 3, 32767, leave, "members[0].error_code", unknown_member),
        _Case("OffsetCommit", 1, 8, commit, of_partition, rejected),
        _Case(
            "DeleteGroups",
            *_ALL_VERSIONS,
            {"groups_names": [group]},
            "results[0].error_code",
            not_found,
        ),
        _Case("ConsumerGroupHeartbeat", *_ALL_VERSIONS, heartbeat, "error_code", unknown),
        _Case(
            "ConsumerGroupDescribe",
            *_ALL_VERSIONS,
            {"group_ids": [group]},
            "groups[0].error_code",
            not_found,
        ),
        _Case("DescribeGroups", 6, 32767, described, "groups[0].error_code", not_found),
    ]
    await _check_cases(cases, context, reporter, node)
    await _check_described_groups(context, reporter, group, node)
    await _check_no_offsets(context, reporter, group, node)


async def _check_described_groups(
    context: ProbeContext, reporter: ProbeReporter, group: str, node: int
) -> None:
    for version in context.target.versions("DescribeGroups", until=5):
        exchange = await context.target.request(
            "DescribeGroups", {"groups": [group]}, version, node
        )
        if reporter.check_error(exchange, "groups[0].error_code", "NONE"):
            state = exchange.field("groups[0].group_state")
            path = "groups[0].group_state"
            reporter.check(
                state == "Dead", f"{exchange}: state {state!r}, not 'Dead'", exchange, path
            )


async def _check_no_offsets(
    context: ProbeContext, reporter: ProbeReporter, group: str, node: int
) -> None:
    """Fetch offsets of a group without commits: there are none, without an error."""
    topic = {"name": group, "topic_id": UUID(int=9), "partition_indexes": [0]}
    fields = {"group_id": group, "topics": [topic]}
    fields["groups"] = [{"group_id": group, "topics": [topic]}]
    for version in context.target.versions("OffsetFetch", until=9):
        exchange = await context.target.request("OffsetFetch", fields, version, node)
        path = "groups[0].topics[0].partitions[0]" if version >= 8 else "topics[0].partitions[0]"
        # Before v2 a broker returned UNKNOWN_TOPIC_OR_PARTITION, in v0 from ZooKeeper.
        if version > 0 and reporter.check_error(exchange, f"{path}.error_code", "NONE"):
            offset = exchange.field(f"{path}.committed_offset")
            reporter.check(offset == -1, f"{exchange}: offset {offset}, not -1", exchange, path)


@probe(
    "P13",
    "Unknown transactional id not rejected",
    source="TransactionCoordinator; KIP-664",
    asks="INVALID_PRODUCER_ID_MAPPING for requests that change it, TRANSACTIONAL_ID_NOT_FOUND for "
    "requests that describe it.",
    example="EndTxn of an unknown transactional id is answered with error 0",
    writes=True,
)
async def probe_unknown_transactional_ids(context: ProbeContext, reporter: ProbeReporter) -> None:
    """End, add to and describe a transaction that was never begun."""
    name = context.fixtures.absent_name("no-such-transaction")
    node = await context.target.coordinator(CoordinatorType.TRANSACTION, name)
    producer = {"transactional_id": name, "producer_id": 2**40, "producer_epoch": 0}
    unmapped = ("INVALID_PRODUCER_ID_MAPPING",)
    described = {"transactional_ids": [name]}
    state = "transaction_states[0].error_code"
    cases = [
        _Case("EndTxn", *_ALL_VERSIONS, {**producer, "committed": True}, "error_code", unmapped),
        _Case(
            "AddOffsetsToTxn",
            *_ALL_VERSIONS,
            {**producer, "group_id": name},
            "error_code",
            unmapped,
        ),
        _Case(
            "DescribeTransactions",
            *_ALL_VERSIONS,
            described,
            state,
            ("TRANSACTIONAL_ID_NOT_FOUND",),
        ),
    ]
    await _check_cases(cases, context, reporter, node)
