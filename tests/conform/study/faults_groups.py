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
    broker_faults,
    client_faults,
    drop,
    duplicate,
    each_without_error,
    has_no_error,
    put,
    where,
)

_NO_ID, _OTHER = UUID(int=0), UUID(int=99)
_MEMBER_COUNT = (*GROUPS, *COOPERATIVE)
_FINDS = (*GROUPS, "kafka4-librdkafka-transactions")

CLASSIC = [
    *broker_faults(
        "groups",
        "JoinGroup",
        GROUPS,
        {
            "a member twice": duplicate("members.0"),
            "a protocol nobody named": put("protocol_name", "none", has_no_error),
            "generation -1 without an error": put("generation_id", -1, has_no_error),
            "no member id without an error": put("member_id", "", has_no_error),
            "no leader without an error": put("leader", "", has_no_error),
            "a generation beside an error": put("error_code", 16, has_no_error),
            "MEMBER_ID_REQUIRED without an id": put("member_id", "", lambda b: b.error_code == 79),
        },
    ),
    *broker_faults(
        "groups",
        "JoinGroup",
        ("kafka4-kafkajs", *GROUPS),
        {"the leader is not among the members": put("members.0.member_id", "x")},
    ),
    *broker_faults(
        "groups",
        "JoinGroup",
        (*COOPERATIVE, *GROUPS),
        {
            "a follower gets the members": put(
                "members",
                [{"member_id": "x", "group_instance_id": None, "metadata": b""}],
                lambda b: not b.members and not b.error_code and b.leader != b.member_id,
            )
        },
    ),
    *broker_faults(
        "groups",
        "SyncGroup",
        GROUPS,
        {
            "another assignment than the leader gave": put(
                "assignment", lambda d: d + b"\0\0", lambda b: b.assignment
            ),
            "an assignment beside an error": put("error_code", 27, lambda b: b.assignment),
        },
    ),
    *broker_faults(
        "groups",
        "SyncGroup",
        GROUPS,
        {"a protocol that JoinGroup did not answer": put("protocol_name", "strange", has_no_error)},
        range(5, 99),
    ),
    *client_faults(
        "groups",
        "SyncGroup",
        GROUPS,
        {"assignments for one member twice": duplicate("assignments.0")},
    ),
    *client_faults(
        "groups",
        "JoinGroup",
        GROUPS,
        {
            "a protocol twice": duplicate("protocols.0"),
            "session timeout -1": put("session_timeout_ms", -1),
        },
    ),
    *client_faults(
        "groups",
        "JoinGroup",
        ("kafka4-librdkafka-group", "demo"),
        {"subscription that can't be read": put("protocols.0.metadata", lambda d: d[:5])},
    ),
    *client_faults(
        "groups",
        "SyncGroup",
        ("kafka4-librdkafka-group", "demo"),
        {
            "assignment that can't be read": put(
                "assignments.0.assignment", lambda d: d[:9], lambda b: len(b.assignments) == 1
            )
        },
    ),
    *client_faults("groups", "Heartbeat", GROUPS, {"generation -7": put("generation_id", -7)}),
    *broker_faults(
        "groups",
        "LeaveGroup",
        GROUPS,
        {
            "LeaveGroup leaves out a member": drop("members.0"),
            "LeaveGroup invents a member": add_item("members.0", "member_id", "x"),
        },
        range(3, 99),
    ),
    *broker_faults(
        "groups",
        "DescribeGroups",
        ADMIN,
        {
            "DescribeGroups leaves out a group": drop("groups.0"),
            "DescribeGroups invents a group": add_item("groups.0", "group_id", "x"),
            "DescribeGroups without a state": put(
                "groups.0.group_state", "", each_without_error("groups.0")
            ),
        },
    ),
    *broker_faults(
        "groups", "DeleteGroups", ADMIN, {"DeleteGroups leaves out a group": drop("results.0")}
    ),
    *broker_faults(
        "groups", "ListGroups", ADMIN, {"ListGroups a group twice": duplicate("groups.0")}
    ),
    *broker_faults(
        "groups",
        "ListGroups",
        ("kafka4-sweep-clients-2", *GROUPS, *ADMIN),
        {"ListGroups of another state": put("groups.0.group_state", "Strange")},
    ),
    *broker_faults(
        "groups",
        "OffsetDelete",
        ADMIN,
        {"OffsetDelete leaves out a partition": drop("topics.0.partitions.0")},
    ),
    *broker_faults(
        "groups", "Heartbeat", GROUPS, {"negative throttle time": put("throttle_time_ms", -20)}
    ),
    *broker_faults(
        "groups",
        "FindCoordinator",
        _FINDS,
        {
            "FindCoordinator without a node": put("node_id", -1, has_no_error),
            "FindCoordinator without a host": put("host", "", has_no_error),
            "FindCoordinator with port -1": put("port", -1, has_no_error),
        },
        range(4),
    ),
    *broker_faults(
        "groups",
        "FindCoordinator",
        (*ADMIN, "kafka4-java-clients"),
        {
            "FindCoordinator leaves out a key": drop("coordinators.0"),
            "FindCoordinator of another key": put("coordinators.0.key", "x"),
        },
        range(4, 99),
    ),
    *client_faults(
        "groups",
        "FindCoordinator",
        _FINDS,
        {"FindCoordinator of type 9": put("key_type", 9)},
        range(1, 99),
    ),
]


def _later(body):
    return body.member_epoch > 1


NEW = [
    *client_faults(
        "groups 848",
        "ConsumerGroupHeartbeat",
        NEW_GROUPS,
        {
            "epoch -5": put("member_epoch", -5),
            "joins without a timeout": put(
                "rebalance_timeout_ms", -1, lambda b: b.member_epoch == 0
            ),
            "owns a partition twice": duplicate("topic_partitions.0.partitions.0"),
        },
    ),
    *broker_faults(
        "groups 848",
        "ConsumerGroupHeartbeat",
        NEW_GROUPS,
        {
            "an epoch that goes down": put("member_epoch", 1, _later),
            "epoch 0 for a member": put("member_epoch", 0, lambda b: b.member_epoch > 0),
            "another member id": put("member_id", "x", lambda b: b.member_epoch > 0),
            "a partition twice": duplicate("assignment.topic_partitions.0.partitions.0"),
            "a negative partition": put("assignment.topic_partitions.0.partitions.0", -2),
            "an assignment beside an error": put("error_code", 110, lambda b: b.assignment),
            "a negative heartbeat interval": put("heartbeat_interval_ms", -1),
        },
    ),
    *broker_faults(
        "groups 848",
        "ConsumerGroupDescribe",
        ("kafka4-java-admin", "kafka4-librdkafka-admin", *NEW_GROUPS),
        {"ConsumerGroupDescribe leaves out a group": drop("groups.0")},
    ),
]

_T = "topics.0.partitions.0"
_B = f"{_T}.acknowledgement_batches.0"
_A = "responses.0.partitions.0.acquired_records.0"

OF_SHARES = [
    *client_faults(
        "share",
        "ShareGroupHeartbeat",
        SHARE,
        {
            "epoch -2": put("member_epoch", -2),
            "joins without topics": put(
                "subscribed_topic_names", None, lambda b: b.member_epoch == 0
            ),
            "no member id": put("member_id", ""),
        },
    ),
    *broker_faults(
        "share",
        "ShareGroupHeartbeat",
        SHARE,
        {
            "an epoch that goes down": put("member_epoch", 1, _later),
            "epoch 0 for a member": put("member_epoch", 0, lambda b: b.member_epoch > 0),
            "another member id": put("member_id", "x", lambda b: b.member_epoch > 0),
            "assigned a partition twice": duplicate("assignment.topic_partitions.0.partitions.0"),
        },
    ),
    *client_faults(
        "share",
        "ShareFetch",
        SHARE,
        {
            "session epoch jumps": put(
                "share_session_epoch", lambda n: n + 5, lambda b: b.share_session_epoch > 0
            ),
            "session epoch -4": put("share_session_epoch", -4),
        },
    ),
    *client_faults(
        "share",
        "ShareAcknowledge",
        SHARE,
        {
            "a session begins by acknowledging": put("share_session_epoch", 0),
            "a range that ends before it begins": put(f"{_B}.last_offset", -1),
            "acknowledges a range twice": duplicate(_B),
            "type 9": put(f"{_B}.acknowledge_types.0", 9),
            "more types than records": put(f"{_B}.acknowledge_types", [1] * 50),
        },
    ),
    *broker_faults(
        "share",
        "ShareFetch",
        SHARE,
        {
            "acquired behind the records": put(f"{_A}.last_offset", 999),
            "acquired backwards": put(f"{_A}.first_offset", 999),
            "acquired twice": duplicate(_A),
            "delivery count 0": put(f"{_A}.delivery_count", 0),
            "a partition twice": duplicate("responses.0.partitions.0"),
            "records beside an error": put(
                "responses.0.partitions.0.error_code",
                6,
                lambda b: b.responses[0].partitions[0].records,
            ),
            "records of the same count again": put(
                f"{_A}.delivery_count",
                1,
                lambda b: b.responses[0].partitions[0].acquired_records[0].delivery_count > 1,
            ),
        },
    ),
    *broker_faults(
        "share",
        "ShareAcknowledge",
        SHARE,
        {
            "ShareAcknowledge leaves out a partition": drop("responses.0.partitions.0"),
            "ShareAcknowledge invents a partition": add_item(
                "responses.0.partitions.0", "partition_index", 9
            ),
        },
    ),
    *broker_faults(
        "share",
        "ShareGroupDescribe",
        SHARE,
        {"ShareGroupDescribe leaves out a group": drop("groups.0")},
    ),
    *broker_faults(
        "share",
        "DescribeShareGroupOffsets",
        SHARE,
        {"DescribeShareGroupOffsets leaves out a group": drop("groups.0")},
    ),
    *broker_faults(
        "share",
        "AlterShareGroupOffsets",
        SHARE,
        {"AlterShareGroupOffsets leaves out a topic": drop("responses.0")},
    ),
]

_WITH_TOPOLOGY = "topology.subtopologies.0"


def _also_standby(body, sent, script):
    body["standby_tasks"] = deepcopy(body.active_tasks)
    return bool(body.active_tasks)


OF_STREAMS = [
    *client_faults(
        "streams",
        "StreamsGroupHeartbeat",
        STREAMS,
        {
            "epoch -5": put("member_epoch", -5),
            "no member id": put("member_id", ""),
            "joins without a topology": put("topology", None, lambda b: b.member_epoch == 0),
            "joins without a timeout": put(
                "rebalance_timeout_ms", -1, lambda b: b.member_epoch == 0
            ),
            "joins with tasks": put(
                "active_tasks",
                [{"subtopology_id": "0", "partitions": [0]}],
                lambda b: b.member_epoch == 0,
            ),
            "a subtopology twice": duplicate(_WITH_TOPOLOGY),
            "a subtopology without sources": put(f"{_WITH_TOPOLOGY}.source_topics", []),
        },
    ),
    *broker_faults(
        "streams",
        "StreamsGroupHeartbeat",
        STREAMS,
        {
            "epoch 0 for a member": put("member_epoch", 0, lambda b: b.member_epoch > 0),
            "another member id": put("member_id", "x", lambda b: b.member_epoch > 0),
            "a task of an unknown subtopology": put("active_tasks.0.subtopology_id", "9"),
            "a task twice": duplicate("active_tasks.0.partitions.0"),
            "a task in two roles": _also_standby,
            "leaves with another epoch": put("member_epoch", 5, lambda b: b.member_epoch == -1),
        },
    ),
    *broker_faults(
        "streams",
        "StreamsGroupDescribe",
        STREAMS,
        {"StreamsGroupDescribe leaves out a group": drop("groups.0")},
    ),
]

OF_TELEMETRY = [
    *broker_faults(
        "telemetry",
        "GetTelemetrySubscriptions",
        TELEMETRY,
        {
            "no instance id": put("client_instance_id", _NO_ID),
            "no interval": put("push_interval_ms", -1),
            "no bytes are taken": put("telemetry_max_bytes", -1),
            "a compression twice": duplicate("accepted_compression_types.0"),
            "no compression at all": put("accepted_compression_types", []),
        },
    ),
    *broker_faults(
        "telemetry",
        "PushTelemetry",
        TELEMETRY,
        {"negative throttle time": put("throttle_time_ms", -5)},
    ),
    *client_faults(
        "telemetry",
        "PushTelemetry",
        TELEMETRY,
        {
            "another subscription": put("subscription_id", lambda n: n ^ 0xFF),
            "another instance": put("client_instance_id", _OTHER),
            "compression 9": put("compression_type", 9),
        },
    ),
]


def _one_id(body, sent, script):
    body.topics[1]["topic_id"] = body.topics[0].topic_id
    return body.topics[0].topic_id != _NO_ID and not body.topics[1].error_code


def _ip(body):
    return body.topics[0].partitions


METADATA = [
    *broker_faults(
        "metadata",
        "Metadata",
        ("kafka4-librdkafka-group", *CLIENTS),
        {
            "a topic nobody asked for": add_item("topics.0", "name", "x"),
            "a topic left out": drop("topics.0"),
        },
    ),
    *broker_faults(
        "metadata",
        "Metadata",
        CLIENTS,
        {
            "a topic twice": duplicate("topics.0"),
            "leader 99": put(f"{_T}.leader_id", 99, _ip),
            "in-sync replica that is none": put(f"{_T}.isr_nodes", [99]),
            "a replica twice": duplicate(f"{_T}.replica_nodes.0"),
            "a partition left out": drop(_T, lambda b: len(b.topics[0].partitions) > 1),
            "all partitions left out": put(
                "topics.0.partitions", [], each_without_error("topics.0")
            ),
            "a partition twice": duplicate(_T),
            "partition -1": put(f"{_T}.partition_index", -1),
            "controller that is no broker": put("controller_id", 77),
            "broker port -1": put("brokers.0.port", -1),
            "broker port 70000": put("brokers.0.port", 70000),
            "broker -1": put("brokers.0.node_id", -1),
            "a broker twice": duplicate("brokers.0"),
            "leader epoch -9": put(f"{_T}.leader_epoch", -9),
        },
    ),
    *broker_faults(
        "metadata",
        "Metadata",
        ("kafka4-leader-change", *CLIENTS),
        {
            "leader epoch goes down": put(
                f"{_T}.leader_epoch", 0, lambda b: b.topics[0].partitions[0].leader_epoch > 0
            )
        },
    ),
    *client_faults("metadata", "Metadata", CLIENTS, {"a topic twice asked": duplicate("topics.0")}),
    *broker_faults(
        "metadata",
        "DescribeCluster",
        ADMIN,
        {
            "DescribeCluster without a cluster id": put("cluster_id", "", has_no_error),
            "DescribeCluster with a strange controller": put("controller_id", 55),
        },
    ),
    *broker_faults(
        "metadata",
        "DescribeTopicPartitions",
        ("kafka4-java-tools", *ADMIN),
        {"DescribeTopicPartitions a topic nobody asked for": add_item("topics.0", "name", "x")},
    ),
    *broker_faults(
        "topic ids",
        "Metadata",
        CLIENTS,
        {"zero id": put("topics.0.topic_id", _NO_ID, each_without_error("topics.0"))},
    ),
    *broker_faults(
        "topic ids",
        "Metadata",
        ("kafka4-java-tools", *CLIENTS, *ADMIN),
        {"two topics with one id": _one_id},
    ),
    *broker_faults(
        "topic ids",
        "Metadata",
        ("kafka4-java-clients", *CLIENTS),
        {"an id that changes": put("topics.0.topic_id", _OTHER, each_without_error("topics.0"))},
        range(10, 99),
    ),
    *broker_faults(
        "topic ids",
        "CreateTopics",
        ADMIN,
        {"created without id": put("topics.0.topic_id", _NO_ID, each_without_error("topics.0"))},
        range(7, 99),
    ),
    *broker_faults(
        "topic ids",
        "DescribeTopicPartitions",
        ("kafka4-java-tools", *ADMIN),
        {
            "DescribeTopicPartitions with the zero id": put(
                "topics.0.topic_id", _NO_ID, each_without_error("topics.0")
            )
        },
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
        fault
        for api, path in _LEAVES_OUT
        for fault in broker_faults(
            "admin", api, (*ADMIN, *QUORUM), {f"{api} leaves out an item": drop(path)}
        )
    ),
    *(
        fault
        for api, path, name in _INVENTS
        for fault in broker_faults(
            "admin", api, (*ADMIN, *QUORUM), {f"{api} invents an item": add_item(path, name, "x")}
        )
    ),
    *broker_faults(
        "admin",
        "DescribeConfigs",
        ADMIN,
        {
            "a sensitive value shown": put(
                "results.0.configs.0.is_sensitive", True, lambda b: b.results[0].configs[0].value
            ),
            "a setting twice": duplicate("results.0.configs.0"),
            "settings beside an error": put(
                "results.0.error_code", 29, lambda b: b.results[0].configs
            ),
        },
    ),
    *broker_faults(
        "admin",
        "DescribeConfigs",
        ("kafka4-sweep-admin", "kafka4-java-tools", *ADMIN),
        {
            "a setting nobody asked for": where(
                lambda b: b.resources[0].configuration_keys, put("results.0.configs.0.name", "x")
            )
        },
    ),
    *broker_faults(
        "admin",
        "CreateTopics",
        (*ADMIN, *QUORUM),
        {
            "another number of partitions": put(
                "topics.0.num_partitions", 44, each_without_error("topics.0")
            )
        },
        range(5, 99),
    ),
    *broker_faults(
        "admin",
        "CreateTopics",
        ADMIN,
        {
            "a created topic twice": duplicate("topics.0"),
            "an unknown error code": put("topics.0.error_code", 4711),
        },
    ),
    *client_faults(
        "admin",
        "CreateTopics",
        ADMIN,
        {"a topic created twice": duplicate("topics.0"), "a bad name": put("topics.0.name", "a b")},
    ),
    *client_faults(
        "admin", "DeleteTopics", ADMIN, {"a topic deleted twice": duplicate("topics.0")}
    ),
    *broker_faults(
        "admin",
        "ListGroups",
        ("kafka4-java-tools", "kafka4-sweep-clients-2"),
        {"a group listed of type strange": put("groups.0.group_type", "strange")},
    ),
    *broker_faults(
        "admin",
        "ListConfigResources",
        ADMIN,
        {"a config resource of another type": put("config_resources.0.resource_type", 77)},
    ),
    *broker_faults(
        "admin",
        "CreateDelegationToken",
        ("kafka4-sweep-sasl",),
        {
            "a token that ends before it begins": put("expiry_timestamp_ms", 1, has_no_error),
            "a token without hmac": put("hmac", b"", has_no_error),
        },
    ),
    *broker_faults(
        "admin", "DescribeQuorum", QUORUM, {"DescribeQuorum leaves out a topic": drop("topics.0")}
    ),
    *broker_faults(
        "codes",
        "Heartbeat",
        GROUPS,
        {
            "an unknown error code in Heartbeat": put("error_code", 777),
            "error code -9": put("error_code", -9),
        },
    ),
]

LOGIN = [
    *broker_faults(
        "sasl",
        "SaslHandshake",
        SASL,
        {
            "an unlisted mechanism is taken": put("mechanisms", ["X"], has_no_error),
            "a listed mechanism is refused": put("error_code", 33, has_no_error),
            "no mechanisms": put("mechanisms", [], has_no_error),
            "a mechanism twice": duplicate("mechanisms.0"),
        },
    ),
    *broker_faults(
        "sasl", "SaslAuthenticate", SASL, {"a negative lifetime": put("session_lifetime_ms", -1)}
    ),
]

FAULTS = [*CLASSIC, *NEW, *OF_SHARES, *OF_STREAMS, *OF_TELEMETRY, *METADATA, *OF_ADMIN, *LOGIN]
