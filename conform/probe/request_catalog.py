"""
Harmless requests for each API at each of its versions.

Requests that read use unused names; requests that write, which `--allow-writes` permits, touch
the probes' own objects, change nothing, or must be rejected. A request that
would change the cluster if a broker accepted it is never sent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias
from uuid import UUID, uuid4

from conform.probe.probe_fixtures import NO_ID, Fixtures, Topic
from conform.probe.record_fixtures import encode_one_record

Fields: TypeAlias = dict[str, Any]
FieldsByVersion: TypeAlias = Callable[[int], Fields]
"""Returns the fields of a request at a version."""

_TOPIC_RESOURCE, _LITERAL, _ANY = 2, 3, 1
_NO_SUBSCRIPTION = 2**31 - 1
_METADATA_LOG = "__cluster_metadata"

INTER_BROKER_APIS = frozenset(
    {
        "LeaderAndIsr",
        "StopReplica",
        "UpdateMetadata",
        "ControlledShutdown",
        "Vote",
        "BeginQuorumEpoch",
        "EndQuorumEpoch",
        "AlterPartition",
        "Envelope",
        "FetchSnapshot",
        "BrokerRegistration",
        "BrokerHeartbeat",
        "UnregisterBroker",
        "AllocateProducerIds",
        "ControllerRegistration",
        "AssignReplicasToDirs",
        "AddRaftVoter",
        "RemoveRaftVoter",
        "UpdateRaftVoter",
        "UnregisterController",
        "WriteTxnMarkers",
        "InitializeShareGroupState",
        "WriteShareGroupState",
        "DeleteShareGroupState",
    }
)
"""APIs between brokers and controllers, which also add or remove them."""


def at_every_version(fields: Fields) -> FieldsByVersion:
    """Return the same fields at each version."""
    return lambda _: fields


def read_requests(name: str) -> dict[str, Fields]:
    """Return read-only requests, about a name that does not exist."""
    partition = {"partition_index": 0, "partition": 0, "current_leader_epoch": -1, "timestamp": -1}
    by_name = {"topic": name, "name": name, "topic_id": UUID(int=9)}
    acl = {"resource_type_filter": _TOPIC_RESOURCE, "resource_name_filter": name}
    acl |= {"pattern_type_filter": _LITERAL, "operation": _ANY, "permission_type": _ANY}
    quota_user = {"entity_type": "user", "match_type": 0, "match": name}
    config = {"resource_type": _TOPIC_RESOURCE, "resource_name": name, "configuration_keys": None}
    log = [{"topic_name": _METADATA_LOG, "partitions": [{"partition_index": 0}]}]
    return {
        "Fetch": {"replica_id": -1, "topics": [{**by_name, "partitions": [partition]}]},
        "ListOffsets": {"replica_id": -1, "topics": [{**by_name, "partitions": [partition]}]},
        "Metadata": {"topics": []},
        "OffsetFetch": {
            "group_id": name,
            "topics": [{**by_name, "partition_indexes": [0]}],
            "groups": [{"group_id": name, "topics": [{**by_name, "partition_indexes": [0]}]}],
        },
        "DescribeGroups": {"groups": [name]},
        "ListGroups": {"states_filter": ["Dead"], "types_filter": ["classic"]},
        "SaslHandshake": {"mechanism": "KAFKASHARK"},
        "SaslAuthenticate": {"auth_bytes": b""},
        "ApiVersions": {"client_software_name": "kafkashark", "client_software_version": "1"},
        "OffsetForLeaderEpoch": {
            "replica_id": -1,
            "topics": [{**by_name, "partitions": [{"partition": 0, "leader_epoch": 0}]}],
        },
        "DescribeAcls": acl,
        "DescribeConfigs": {"resources": [config]},
        "DescribeLogDirs": {"topics": [{**by_name, "partitions": [0]}]},
        "DescribeDelegationToken": {"owners": []},
        "ListPartitionReassignments": {"topics": [{**by_name, "partition_indexes": [0]}]},
        "DescribeClientQuotas": {"components": [quota_user], "strict": True},
        "DescribeUserScramCredentials": {"users": [{"name": name}]},
        "DescribeQuorum": {"topics": log},
        "DescribeCluster": {},
        "DescribeProducers": {"topics": [{**by_name, "partition_indexes": [0]}]},
        "DescribeTransactions": {"transactional_ids": [name]},
        "ListTransactions": {"state_filters": ["Ongoing"], "producer_id_filters": [2**62]},
        "ConsumerGroupDescribe": {"group_ids": [name]},
        "GetTelemetrySubscriptions": {},
        "ListConfigResources": {},
        "DescribeTopicPartitions": {"topics": [by_name], "response_partition_limit": 10},
        "ShareGroupDescribe": {"group_ids": [name]},
        "StreamsGroupDescribe": {"group_ids": [name]},
        "DescribeShareGroupOffsets": {"groups": [{"group_id": name, "topics": []}]},
        "ReadShareGroupState": {"group_id": name, "topics": []},
        "ReadShareGroupStateSummary": {"group_id": name, "topics": []},
    }


READ_APIS = frozenset(read_requests(""))
"""APIs that only read. FindCoordinator does not: it creates a broker's internal topics."""


def write_requests(fixtures: Fixtures, topic: Topic) -> dict[str, FieldsByVersion]:
    """
    Return the requests of the other APIs, by version.

    Args:
        fixtures: Creates names, and records those of objects to clean up.
        topic: A topic of the probes.
    """
    by_name = {"name": topic.name, "topic": topic.name, "topic_id": topic.topic_id}
    absent, member = fixtures.absent_name("nothing"), "no-such-member"
    resource = {"resource_type": _TOPIC_RESOURCE, "resource_name": topic.name}
    producer = {"producer_id": 2**62, "producer_epoch": 0}
    in_group = {"group_id": absent, "generation_id": 1, "member_id": member}
    heartbeat = {"group_id": absent, "member_id": str(uuid4()), "member_epoch": 5}
    transaction = {"transactional_id": absent, "group_id": absent, **producer}
    offset = {"partition_index": 0, "committed_offset": 0, "committed_leader_epoch": -1}
    share = {"group_id": absent, "member_id": str(uuid4()), "share_session_epoch": -1}
    requests: dict[str, Fields] = {
        "OffsetCommit": {
            "group_id": fixtures.group_id("committed"),
            "generation_id_or_member_epoch": -1,
            "topics": [{**by_name, "partitions": [offset]}],
        },
        "FindCoordinator": {"key": absent, "coordinator_keys": [absent]},
        "JoinGroup": {
            "group_id": absent,
            "session_timeout_ms": 1,
            "rebalance_timeout_ms": 1000,
            "protocol_type": "consumer",
            "protocols": [{"name": "range", "metadata": b""}],
        },
        "Heartbeat": in_group,
        "LeaveGroup": {**in_group, "members": [{"member_id": member}]},
        "SyncGroup": {**in_group, "protocol_type": "consumer", "protocol_name": "range"},
        "DeleteRecords": {"topics": [{**by_name, "partitions": [{**offset, "offset": 0}]}]},
        "InitProducerId": {"transactional_id": None, "producer_id": -1, "producer_epoch": -1},
        "AddOffsetsToTxn": transaction,
        "EndTxn": transaction,
        "TxnOffsetCommit": {**transaction, "topics": [{**by_name, "partitions": [offset]}]},
        "CreateAcls": {},
        "DeleteAcls": {},
        "AlterConfigs": {"resources": [{**resource, "configs": []}], "validate_only": True},
        "AlterReplicaLogDirs": {},
        "CreatePartitions": {
            "topics": [{**by_name, "count": 2, "assignments": None}],
            "timeout_ms": 1000,
            "validate_only": True,
        },
        "CreateDelegationToken": {"renewers": [], "max_lifetime_ms": 1},
        "RenewDelegationToken": {"hmac": b"kafkashark", "renew_period_ms": 1},
        "ExpireDelegationToken": {"hmac": b"kafkashark", "expiry_time_period_ms": -1},
        "DeleteGroups": {"groups_names": [absent]},
        "ElectLeaders": {
            "topic_partitions": [{**by_name, "partitions": [0]}],
            "timeout_ms": 1000,
        },
        "IncrementalAlterConfigs": {
            "resources": [{**resource, "configs": []}],
            "validate_only": True,
        },
        "AlterPartitionReassignments": {"topics": [], "timeout_ms": 1000},
        "OffsetDelete": {
            "group_id": absent,
            "topics": [{**by_name, "partitions": [{"partition_index": 0}]}],
        },
        "AlterClientQuotas": {"entries": [], "validate_only": True},
        "AlterUserScramCredentials": {},
        "UpdateFeatures": {"timeout_ms": 1000, "validate_only": True},
        "ConsumerGroupHeartbeat": heartbeat,
        "PushTelemetry": {"client_instance_id": NO_ID, "subscription_id": _NO_SUBSCRIPTION},
        "ShareGroupHeartbeat": heartbeat,
        "ShareFetch": share,
        "ShareAcknowledge": share,
        "StreamsGroupHeartbeat": heartbeat,
        "StreamsGroupTopologyDescriptionUpdate": {**heartbeat, "topology_epoch": 1},
        "AlterShareGroupOffsets": {"group_id": absent, "topics": []},
        "DeleteShareGroupOffsets": {"group_id": absent, "topics": []},
    }

    def produce(version: int) -> Fields:
        magic = 2 if version > 2 else int(version == 2)
        partition = {"index": 0, "records": encode_one_record(b"form", magic=magic)}
        data = [{**by_name, "partition_data": [partition]}]
        return {"acks": -1, "timeout_ms": 5000, "topic_data": data}

    def create(version: int) -> Fields:
        topic_fields = {
            "name": fixtures.topic_name(f"made-{version}"),
            "num_partitions": 1,
            "replication_factor": 1,
        }
        return {"topics": [topic_fields], "timeout_ms": 5000}

    def delete(version: int) -> Fields:
        name = fixtures.topic_name(f"made-{version}")
        return {"topic_names": [name], "topics": [{"name": name}], "timeout_ms": 5000}

    def add_partitions(version: int) -> Fields:
        partitions = [{**by_name, "partitions": [0]}]
        added = {**transaction, "verify_only": False, "topics": partitions}
        return {
            "v3_and_below_transactional_id": absent,
            "v3_and_below_producer_id": producer["producer_id"],
            "v3_and_below_topics": partitions,
            "transactions": [added],
        }

    return {
        **{api: at_every_version(fields) for api, fields in requests.items()},
        "Produce": produce,
        "CreateTopics": create,
        "DeleteTopics": delete,
        "AddPartitionsToTxn": add_partitions,
    }
