"""Faults of groups of all kinds, telemetry, metadata, topic ids, administration and login."""

from __future__ import annotations

from copy import deepcopy
from uuid import UUID

from tests.conform.study.changes import (
    ADMIN,
    CLIENTS,
    COOPERATIVE,
    GROUPS,
    NEW_GROUPS,
    QUORUM,
    SASL,
    SHARE,
    STREAMS,
    TELEMETRY,
    add_item,
    drop,
    duplicate,
    each_without_error,
    has_no_error,
    put,
    request_fault,
    response_fault,
    where,
)

_NO_ID, _OTHER = UUID(int=0), UUID(int=99)
_MEMBER_COUNT = (*GROUPS, *COOPERATIVE)
_FINDS = (*GROUPS, "kafka4-librdkafka-transactions")

CLASSIC = [
    response_fault("groups", "a member twice", "JoinGroup", duplicate("members.0"), GROUPS),
    response_fault(
        "groups",
        "the leader is not among the members",
        "JoinGroup",
        put("members.0.member_id", "x"),
        ("kafka4-kafkajs", *GROUPS),
    ),
    response_fault(
        "groups",
        "a follower gets the members",
        "JoinGroup",
        put(
            "members",
            [{"member_id": "x", "group_instance_id": None, "metadata": b""}],
            lambda b: not b.members and not b.error_code and b.leader != b.member_id,
        ),
        (*COOPERATIVE, *GROUPS),
    ),
    response_fault(
        "groups",
        "a protocol nobody named",
        "JoinGroup",
        put("protocol_name", "none", has_no_error),
        GROUPS,
    ),
    response_fault(
        "groups",
        "generation -1 without an error",
        "JoinGroup",
        put("generation_id", -1, has_no_error),
        GROUPS,
    ),
    response_fault(
        "groups",
        "no member id without an error",
        "JoinGroup",
        put("member_id", "", has_no_error),
        GROUPS,
    ),
    response_fault(
        "groups", "no leader without an error", "JoinGroup", put("leader", "", has_no_error), GROUPS
    ),
    response_fault(
        "groups",
        "a generation beside an error",
        "JoinGroup",
        put("error_code", 16, has_no_error),
        GROUPS,
    ),
    response_fault(
        "groups",
        "MEMBER_ID_REQUIRED without an id",
        "JoinGroup",
        put("member_id", "", lambda b: b.error_code == 79),
        GROUPS,
    ),
    response_fault(
        "groups",
        "another assignment than the leader gave",
        "SyncGroup",
        put("assignment", lambda d: d + b"\0\0", lambda b: b.assignment),
        GROUPS,
    ),
    response_fault(
        "groups",
        "an assignment beside an error",
        "SyncGroup",
        put("error_code", 27, lambda b: b.assignment),
        GROUPS,
    ),
    response_fault(
        "groups",
        "a protocol that JoinGroup did not answer",
        "SyncGroup",
        put("protocol_name", "strange", has_no_error),
        GROUPS,
        range(5, 99),
    ),
    request_fault(
        "groups",
        "assignments for one member twice",
        "SyncGroup",
        duplicate("assignments.0"),
        GROUPS,
    ),
    request_fault("groups", "a protocol twice", "JoinGroup", duplicate("protocols.0"), GROUPS),
    request_fault(
        "groups",
        "subscription that can't be read",
        "JoinGroup",
        put("protocols.0.metadata", lambda d: d[:5]),
        ("kafka4-librdkafka-group", "demo"),
    ),
    request_fault(
        "groups",
        "assignment that can't be read",
        "SyncGroup",
        put("assignments.0.assignment", lambda d: d[:9], lambda b: len(b.assignments) == 1),
        ("kafka4-librdkafka-group", "demo"),
    ),
    request_fault("groups", "generation -7", "Heartbeat", put("generation_id", -7), GROUPS),
    request_fault(
        "groups", "session timeout -1", "JoinGroup", put("session_timeout_ms", -1), GROUPS
    ),
    response_fault(
        "groups",
        "LeaveGroup leaves out a member",
        "LeaveGroup",
        drop("members.0"),
        GROUPS,
        range(3, 99),
    ),
    response_fault(
        "groups",
        "LeaveGroup invents a member",
        "LeaveGroup",
        add_item("members.0", "member_id", "x"),
        GROUPS,
        range(3, 99),
    ),
    response_fault(
        "groups", "DescribeGroups leaves out a group", "DescribeGroups", drop("groups.0"), ADMIN
    ),
    response_fault(
        "groups",
        "DescribeGroups invents a group",
        "DescribeGroups",
        add_item("groups.0", "group_id", "x"),
        ADMIN,
    ),
    response_fault(
        "groups",
        "DescribeGroups without a state",
        "DescribeGroups",
        put("groups.0.group_state", "", each_without_error("groups.0")),
        ADMIN,
    ),
    response_fault(
        "groups", "DeleteGroups leaves out a group", "DeleteGroups", drop("results.0"), ADMIN
    ),
    response_fault(
        "groups", "ListGroups a group twice", "ListGroups", duplicate("groups.0"), ADMIN
    ),
    response_fault(
        "groups",
        "ListGroups of another state",
        "ListGroups",
        put("groups.0.group_state", "Strange"),
        ("kafka4-sweep-clients-2", *GROUPS, *ADMIN),
    ),
    response_fault(
        "groups",
        "OffsetDelete leaves out a partition",
        "OffsetDelete",
        drop("topics.0.partitions.0"),
        ADMIN,
    ),
    response_fault(
        "groups", "negative throttle time", "Heartbeat", put("throttle_time_ms", -20), GROUPS
    ),
    response_fault(
        "groups",
        "FindCoordinator without a node",
        "FindCoordinator",
        put("node_id", -1, has_no_error),
        _FINDS,
        range(4),
    ),
    response_fault(
        "groups",
        "FindCoordinator without a host",
        "FindCoordinator",
        put("host", "", has_no_error),
        _FINDS,
        range(4),
    ),
    response_fault(
        "groups",
        "FindCoordinator with port -1",
        "FindCoordinator",
        put("port", -1, has_no_error),
        _FINDS,
        range(4),
    ),
    response_fault(
        "groups",
        "FindCoordinator leaves out a key",
        "FindCoordinator",
        drop("coordinators.0"),
        (*ADMIN, "kafka4-java-clients"),
        range(4, 99),
    ),
    response_fault(
        "groups",
        "FindCoordinator of another key",
        "FindCoordinator",
        put("coordinators.0.key", "x"),
        (*ADMIN, "kafka4-java-clients"),
        range(4, 99),
    ),
    request_fault(
        "groups",
        "FindCoordinator of type 9",
        "FindCoordinator",
        put("key_type", 9),
        _FINDS,
        range(1, 99),
    ),
]


def _later(body):
    return body.member_epoch > 1


NEW = [
    request_fault(
        "groups 848", "epoch -5", "ConsumerGroupHeartbeat", put("member_epoch", -5), NEW_GROUPS
    ),
    request_fault(
        "groups 848",
        "joins without a timeout",
        "ConsumerGroupHeartbeat",
        put("rebalance_timeout_ms", -1, lambda b: b.member_epoch == 0),
        NEW_GROUPS,
    ),
    request_fault(
        "groups 848",
        "owns a partition twice",
        "ConsumerGroupHeartbeat",
        duplicate("topic_partitions.0.partitions.0"),
        NEW_GROUPS,
    ),
    response_fault(
        "groups 848",
        "an epoch that goes down",
        "ConsumerGroupHeartbeat",
        put("member_epoch", 1, _later),
        NEW_GROUPS,
    ),
    response_fault(
        "groups 848",
        "epoch 0 for a member",
        "ConsumerGroupHeartbeat",
        put("member_epoch", 0, lambda b: b.member_epoch > 0),
        NEW_GROUPS,
    ),
    response_fault(
        "groups 848",
        "another member id",
        "ConsumerGroupHeartbeat",
        put("member_id", "x", lambda b: b.member_epoch > 0),
        NEW_GROUPS,
    ),
    response_fault(
        "groups 848",
        "a partition twice",
        "ConsumerGroupHeartbeat",
        duplicate("assignment.topic_partitions.0.partitions.0"),
        NEW_GROUPS,
    ),
    response_fault(
        "groups 848",
        "a negative partition",
        "ConsumerGroupHeartbeat",
        put("assignment.topic_partitions.0.partitions.0", -2),
        NEW_GROUPS,
    ),
    response_fault(
        "groups 848",
        "an assignment beside an error",
        "ConsumerGroupHeartbeat",
        put("error_code", 110, lambda b: b.assignment),
        NEW_GROUPS,
    ),
    response_fault(
        "groups 848",
        "a negative heartbeat interval",
        "ConsumerGroupHeartbeat",
        put("heartbeat_interval_ms", -1),
        NEW_GROUPS,
    ),
    response_fault(
        "groups 848",
        "ConsumerGroupDescribe leaves out a group",
        "ConsumerGroupDescribe",
        drop("groups.0"),
        ("kafka4-java-admin", "kafka4-librdkafka-admin", *NEW_GROUPS),
    ),
]

_T = "topics.0.partitions.0"
_B = f"{_T}.acknowledgement_batches.0"
_A = "responses.0.partitions.0.acquired_records.0"

OF_SHARES = [
    request_fault("share", "epoch -2", "ShareGroupHeartbeat", put("member_epoch", -2), SHARE),
    request_fault(
        "share",
        "joins without topics",
        "ShareGroupHeartbeat",
        put("subscribed_topic_names", None, lambda b: b.member_epoch == 0),
        SHARE,
    ),
    request_fault("share", "no member id", "ShareGroupHeartbeat", put("member_id", ""), SHARE),
    response_fault(
        "share",
        "an epoch that goes down",
        "ShareGroupHeartbeat",
        put("member_epoch", 1, _later),
        SHARE,
    ),
    response_fault(
        "share",
        "epoch 0 for a member",
        "ShareGroupHeartbeat",
        put("member_epoch", 0, lambda b: b.member_epoch > 0),
        SHARE,
    ),
    response_fault(
        "share",
        "another member id",
        "ShareGroupHeartbeat",
        put("member_id", "x", lambda b: b.member_epoch > 0),
        SHARE,
    ),
    response_fault(
        "share",
        "assigned a partition twice",
        "ShareGroupHeartbeat",
        duplicate("assignment.topic_partitions.0.partitions.0"),
        SHARE,
    ),
    request_fault(
        "share",
        "session epoch jumps",
        "ShareFetch",
        put("share_session_epoch", lambda n: n + 5, lambda b: b.share_session_epoch > 0),
        SHARE,
    ),
    request_fault("share", "session epoch -4", "ShareFetch", put("share_session_epoch", -4), SHARE),
    request_fault(
        "share",
        "a session begins by acknowledging",
        "ShareAcknowledge",
        put("share_session_epoch", 0),
        SHARE,
    ),
    request_fault(
        "share",
        "a range that ends before it begins",
        "ShareAcknowledge",
        put(f"{_B}.last_offset", -1),
        SHARE,
    ),
    request_fault("share", "acknowledges a range twice", "ShareAcknowledge", duplicate(_B), SHARE),
    request_fault(
        "share", "type 9", "ShareAcknowledge", put(f"{_B}.acknowledge_types.0", 9), SHARE
    ),
    request_fault(
        "share",
        "more types than records",
        "ShareAcknowledge",
        put(f"{_B}.acknowledge_types", [1] * 50),
        SHARE,
    ),
    response_fault(
        "share", "acquired behind the records", "ShareFetch", put(f"{_A}.last_offset", 999), SHARE
    ),
    response_fault(
        "share", "acquired backwards", "ShareFetch", put(f"{_A}.first_offset", 999), SHARE
    ),
    response_fault("share", "acquired twice", "ShareFetch", duplicate(_A), SHARE),
    response_fault(
        "share", "delivery count 0", "ShareFetch", put(f"{_A}.delivery_count", 0), SHARE
    ),
    response_fault(
        "share", "a partition twice", "ShareFetch", duplicate("responses.0.partitions.0"), SHARE
    ),
    response_fault(
        "share",
        "records beside an error",
        "ShareFetch",
        put(
            "responses.0.partitions.0.error_code", 6, lambda b: b.responses[0].partitions[0].records
        ),
        SHARE,
    ),
    response_fault(
        "share",
        "ShareAcknowledge leaves out a partition",
        "ShareAcknowledge",
        drop("responses.0.partitions.0"),
        SHARE,
    ),
    response_fault(
        "share",
        "ShareAcknowledge invents a partition",
        "ShareAcknowledge",
        add_item("responses.0.partitions.0", "partition_index", 9),
        SHARE,
    ),
    response_fault(
        "share",
        "ShareGroupDescribe leaves out a group",
        "ShareGroupDescribe",
        drop("groups.0"),
        SHARE,
    ),
    response_fault(
        "share",
        "DescribeShareGroupOffsets leaves out a group",
        "DescribeShareGroupOffsets",
        drop("groups.0"),
        SHARE,
    ),
    response_fault(
        "share",
        "AlterShareGroupOffsets leaves out a topic",
        "AlterShareGroupOffsets",
        drop("responses.0"),
        SHARE,
    ),
    response_fault(
        "share",
        "records of the same count again",
        "ShareFetch",
        put(
            f"{_A}.delivery_count",
            1,
            lambda b: b.responses[0].partitions[0].acquired_records[0].delivery_count > 1,
        ),
        SHARE,
    ),
]

_WITH_TOPOLOGY = "topology.subtopologies.0"


def _also_standby(body, sent, script):
    body["standby_tasks"] = deepcopy(body.active_tasks)
    return bool(body.active_tasks)


OF_STREAMS = [
    request_fault("streams", "epoch -5", "StreamsGroupHeartbeat", put("member_epoch", -5), STREAMS),
    request_fault(
        "streams", "no member id", "StreamsGroupHeartbeat", put("member_id", ""), STREAMS
    ),
    request_fault(
        "streams",
        "joins without a topology",
        "StreamsGroupHeartbeat",
        put("topology", None, lambda b: b.member_epoch == 0),
        STREAMS,
    ),
    request_fault(
        "streams",
        "joins without a timeout",
        "StreamsGroupHeartbeat",
        put("rebalance_timeout_ms", -1, lambda b: b.member_epoch == 0),
        STREAMS,
    ),
    request_fault(
        "streams",
        "joins with tasks",
        "StreamsGroupHeartbeat",
        put(
            "active_tasks",
            [{"subtopology_id": "0", "partitions": [0]}],
            lambda b: b.member_epoch == 0,
        ),
        STREAMS,
    ),
    request_fault(
        "streams",
        "a subtopology twice",
        "StreamsGroupHeartbeat",
        duplicate(_WITH_TOPOLOGY),
        STREAMS,
    ),
    request_fault(
        "streams",
        "a subtopology without sources",
        "StreamsGroupHeartbeat",
        put(f"{_WITH_TOPOLOGY}.source_topics", []),
        STREAMS,
    ),
    response_fault(
        "streams",
        "epoch 0 for a member",
        "StreamsGroupHeartbeat",
        put("member_epoch", 0, lambda b: b.member_epoch > 0),
        STREAMS,
    ),
    response_fault(
        "streams",
        "another member id",
        "StreamsGroupHeartbeat",
        put("member_id", "x", lambda b: b.member_epoch > 0),
        STREAMS,
    ),
    response_fault(
        "streams",
        "a task of an unknown subtopology",
        "StreamsGroupHeartbeat",
        put("active_tasks.0.subtopology_id", "9"),
        STREAMS,
    ),
    response_fault(
        "streams",
        "a task twice",
        "StreamsGroupHeartbeat",
        duplicate("active_tasks.0.partitions.0"),
        STREAMS,
    ),
    response_fault(
        "streams", "a task in two roles", "StreamsGroupHeartbeat", _also_standby, STREAMS
    ),
    response_fault(
        "streams",
        "leaves with another epoch",
        "StreamsGroupHeartbeat",
        put("member_epoch", 5, lambda b: b.member_epoch == -1),
        STREAMS,
    ),
    response_fault(
        "streams",
        "StreamsGroupDescribe leaves out a group",
        "StreamsGroupDescribe",
        drop("groups.0"),
        STREAMS,
    ),
]

OF_TELEMETRY = [
    response_fault(
        "telemetry",
        "no instance id",
        "GetTelemetrySubscriptions",
        put("client_instance_id", _NO_ID),
        TELEMETRY,
    ),
    response_fault(
        "telemetry",
        "no interval",
        "GetTelemetrySubscriptions",
        put("push_interval_ms", -1),
        TELEMETRY,
    ),
    response_fault(
        "telemetry",
        "no bytes are taken",
        "GetTelemetrySubscriptions",
        put("telemetry_max_bytes", -1),
        TELEMETRY,
    ),
    response_fault(
        "telemetry",
        "a compression twice",
        "GetTelemetrySubscriptions",
        duplicate("accepted_compression_types.0"),
        TELEMETRY,
    ),
    response_fault(
        "telemetry",
        "no compression at all",
        "GetTelemetrySubscriptions",
        put("accepted_compression_types", []),
        TELEMETRY,
    ),
    response_fault(
        "telemetry",
        "negative throttle time",
        "PushTelemetry",
        put("throttle_time_ms", -5),
        TELEMETRY,
    ),
    request_fault(
        "telemetry",
        "another subscription",
        "PushTelemetry",
        put("subscription_id", lambda n: n ^ 0xFF),
        TELEMETRY,
    ),
    request_fault(
        "telemetry",
        "another instance",
        "PushTelemetry",
        put("client_instance_id", _OTHER),
        TELEMETRY,
    ),
    request_fault(
        "telemetry", "compression 9", "PushTelemetry", put("compression_type", 9), TELEMETRY
    ),
]


def _one_id(body, sent, script):
    body.topics[1]["topic_id"] = body.topics[0].topic_id
    return body.topics[0].topic_id != _NO_ID and not body.topics[1].error_code


def _ip(body):
    return body.topics[0].partitions


METADATA = [
    response_fault(
        "metadata",
        "a topic nobody asked for",
        "Metadata",
        add_item("topics.0", "name", "x"),
        ("kafka4-librdkafka-group", *CLIENTS),
    ),
    response_fault("metadata", "a topic twice", "Metadata", duplicate("topics.0"), CLIENTS),
    response_fault(
        "metadata",
        "a topic left out",
        "Metadata",
        drop("topics.0"),
        ("kafka4-librdkafka-group", *CLIENTS),
    ),
    response_fault("metadata", "leader 99", "Metadata", put(f"{_T}.leader_id", 99, _ip), CLIENTS),
    response_fault(
        "metadata",
        "in-sync replica that is none",
        "Metadata",
        put(f"{_T}.isr_nodes", [99]),
        CLIENTS,
    ),
    response_fault(
        "metadata", "a replica twice", "Metadata", duplicate(f"{_T}.replica_nodes.0"), CLIENTS
    ),
    response_fault(
        "metadata",
        "a partition left out",
        "Metadata",
        drop(_T, lambda b: len(b.topics[0].partitions) > 1),
        CLIENTS,
    ),
    response_fault(
        "metadata",
        "all partitions left out",
        "Metadata",
        put("topics.0.partitions", [], each_without_error("topics.0")),
        CLIENTS,
    ),
    response_fault("metadata", "a partition twice", "Metadata", duplicate(_T), CLIENTS),
    response_fault(
        "metadata", "partition -1", "Metadata", put(f"{_T}.partition_index", -1), CLIENTS
    ),
    response_fault(
        "metadata", "controller that is no broker", "Metadata", put("controller_id", 77), CLIENTS
    ),
    response_fault("metadata", "broker port -1", "Metadata", put("brokers.0.port", -1), CLIENTS),
    response_fault(
        "metadata", "broker port 70000", "Metadata", put("brokers.0.port", 70000), CLIENTS
    ),
    response_fault("metadata", "broker -1", "Metadata", put("brokers.0.node_id", -1), CLIENTS),
    response_fault("metadata", "a broker twice", "Metadata", duplicate("brokers.0"), CLIENTS),
    response_fault(
        "metadata",
        "leader epoch goes down",
        "Metadata",
        put(f"{_T}.leader_epoch", 0, lambda b: b.topics[0].partitions[0].leader_epoch > 0),
        ("kafka4-leader-change", *CLIENTS),
    ),
    response_fault(
        "metadata", "leader epoch -9", "Metadata", put(f"{_T}.leader_epoch", -9), CLIENTS
    ),
    request_fault("metadata", "a topic twice asked", "Metadata", duplicate("topics.0"), CLIENTS),
    response_fault(
        "metadata",
        "DescribeCluster without a cluster id",
        "DescribeCluster",
        put("cluster_id", "", has_no_error),
        ADMIN,
    ),
    response_fault(
        "metadata",
        "DescribeCluster with a strange controller",
        "DescribeCluster",
        put("controller_id", 55),
        ADMIN,
    ),
    response_fault(
        "metadata",
        "DescribeTopicPartitions a topic nobody asked for",
        "DescribeTopicPartitions",
        add_item("topics.0", "name", "x"),
        ("kafka4-java-tools", *ADMIN),
    ),
    response_fault(
        "topic ids",
        "zero id",
        "Metadata",
        put("topics.0.topic_id", _NO_ID, each_without_error("topics.0")),
        CLIENTS,
    ),
    response_fault(
        "topic ids",
        "two topics with one id",
        "Metadata",
        _one_id,
        ("kafka4-java-tools", *CLIENTS, *ADMIN),
    ),
    response_fault(
        "topic ids",
        "an id that changes",
        "Metadata",
        put("topics.0.topic_id", _OTHER, each_without_error("topics.0")),
        ("kafka4-java-clients", *CLIENTS),
        range(10, 99),
    ),
    response_fault(
        "topic ids",
        "created without id",
        "CreateTopics",
        put("topics.0.topic_id", _NO_ID, each_without_error("topics.0")),
        ADMIN,
        range(7, 99),
    ),
    response_fault(
        "topic ids",
        "DescribeTopicPartitions with the zero id",
        "DescribeTopicPartitions",
        put("topics.0.topic_id", _NO_ID, each_without_error("topics.0")),
        ("kafka4-java-tools", *ADMIN),
    ),
]

_LEAVES_OUT = [
    ("CreateTopics", "topics.0"),
    ("DeleteTopics", "responses.0"),
    ("CreatePartitions", "results.0"),
    ("DescribeConfigs", "results.0"),
    ("AlterConfigs", "responses.0"),
    ("IncrementalAlterConfigs", "responses.0"),
    ("CreateAcls", "results.0"),
    ("DeleteAcls", "filter_results.0"),
    ("AlterUserScramCredentials", "results.0"),
    ("ElectLeaders", "replica_election_results.0"),
    ("AlterPartitionReassignments", "responses.0"),
    ("AlterReplicaLogDirs", "results.0"),
]
_INVENTS = [
    ("CreateTopics", "topics.0", "name"),
    ("DeleteTopics", "responses.0", "name"),
    ("CreatePartitions", "results.0", "name"),
    ("DescribeConfigs", "results.0", "resource_name"),
]

OF_ADMIN = [
    *(
        response_fault("admin", f"{api} leaves out an item", api, drop(path), (*ADMIN, *QUORUM))
        for api, path in _LEAVES_OUT
    ),
    *(
        response_fault(
            "admin", f"{api} invents an item", api, add_item(path, name, "x"), (*ADMIN, *QUORUM)
        )
        for api, path, name in _INVENTS
    ),
    response_fault(
        "admin",
        "a sensitive value shown",
        "DescribeConfigs",
        put("results.0.configs.0.is_sensitive", True, lambda b: b.results[0].configs[0].value),
        ADMIN,
    ),
    response_fault(
        "admin", "a setting twice", "DescribeConfigs", duplicate("results.0.configs.0"), ADMIN
    ),
    response_fault(
        "admin",
        "a setting nobody asked for",
        "DescribeConfigs",
        where(lambda b: b.resources[0].configuration_keys, put("results.0.configs.0.name", "x")),
        ("kafka4-sweep-admin", "kafka4-java-tools", *ADMIN),
    ),
    response_fault(
        "admin",
        "settings beside an error",
        "DescribeConfigs",
        put("results.0.error_code", 29, lambda b: b.results[0].configs),
        ADMIN,
    ),
    response_fault(
        "admin",
        "another number of partitions",
        "CreateTopics",
        put("topics.0.num_partitions", 44, each_without_error("topics.0")),
        (*ADMIN, *QUORUM),
        range(5, 99),
    ),
    response_fault("admin", "a created topic twice", "CreateTopics", duplicate("topics.0"), ADMIN),
    request_fault("admin", "a topic created twice", "CreateTopics", duplicate("topics.0"), ADMIN),
    request_fault("admin", "a topic deleted twice", "DeleteTopics", duplicate("topics.0"), ADMIN),
    request_fault("admin", "a bad name", "CreateTopics", put("topics.0.name", "a b"), ADMIN),
    response_fault(
        "admin",
        "a group listed of type strange",
        "ListGroups",
        put("groups.0.group_type", "strange"),
        ("kafka4-java-tools", "kafka4-sweep-clients-2"),
    ),
    response_fault(
        "admin",
        "a config resource of another type",
        "ListConfigResources",
        put("config_resources.0.resource_type", 77),
        ADMIN,
    ),
    response_fault(
        "admin",
        "a token that ends before it begins",
        "CreateDelegationToken",
        put("expiry_timestamp_ms", 1, has_no_error),
        ("kafka4-sweep-sasl",),
    ),
    response_fault(
        "admin",
        "a token without hmac",
        "CreateDelegationToken",
        put("hmac", b"", has_no_error),
        ("kafka4-sweep-sasl",),
    ),
    response_fault(
        "admin", "DescribeQuorum leaves out a topic", "DescribeQuorum", drop("topics.0"), QUORUM
    ),
    response_fault(
        "admin", "an unknown error code", "CreateTopics", put("topics.0.error_code", 4711), ADMIN
    ),
    response_fault(
        "codes", "an unknown error code in Heartbeat", "Heartbeat", put("error_code", 777), GROUPS
    ),
    response_fault("codes", "error code -9", "Heartbeat", put("error_code", -9), GROUPS),
]

LOGIN = [
    response_fault(
        "sasl",
        "an unlisted mechanism is taken",
        "SaslHandshake",
        put("mechanisms", ["X"], has_no_error),
        SASL,
    ),
    response_fault(
        "sasl",
        "a listed mechanism is refused",
        "SaslHandshake",
        put("error_code", 33, has_no_error),
        SASL,
    ),
    response_fault(
        "sasl", "no mechanisms", "SaslHandshake", put("mechanisms", [], has_no_error), SASL
    ),
    response_fault("sasl", "a mechanism twice", "SaslHandshake", duplicate("mechanisms.0"), SASL),
    response_fault(
        "sasl", "a negative lifetime", "SaslAuthenticate", put("session_lifetime_ms", -1), SASL
    ),
]

FAULTS = [*CLASSIC, *NEW, *OF_SHARES, *OF_STREAMS, *OF_TELEMETRY, *METADATA, *OF_ADMIN, *LOGIN]
