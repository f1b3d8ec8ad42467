"""Faults of groups of all kinds, telemetry, metadata, topic ids, administration and login."""

from __future__ import annotations

from copy import deepcopy
from uuid import UUID

from tests.conform.study.changes import (
    ADMIN,
    CLIENTS,
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
    has_no_error,
    put,
)

_NO_ID, _OTHER = UUID(int=0), UUID(int=99)

CLASSIC = [
    *broker_faults(
        "groups",
        "JoinGroup",
        GROUPS,
        {
            "generation -1 without an error": put("generation_id", -1, has_no_error),
        },
    ),
    *broker_faults(
        "groups",
        "SyncGroup",
        GROUPS,
        {
            "an assignment beside an error": put("error_code", 27, lambda b: b.assignment),
        },
    ),
    *broker_faults(
        "groups",
        "LeaveGroup",
        GROUPS,
        {
            "LeaveGroup leaves out a member": drop("members.0"),
        },
        range(3, 99),
    ),
    *broker_faults(
        "groups",
        "OffsetDelete",
        ADMIN,
        {"OffsetDelete leaves out a partition": drop("topics.0.partitions.0")},
    ),
]


NEW = [
    *client_faults(
        "groups 848",
        "ConsumerGroupHeartbeat",
        NEW_GROUPS,
        {
            "epoch -5": put("member_epoch", -5),
        },
    ),
    *broker_faults(
        "groups 848",
        "ConsumerGroupHeartbeat",
        NEW_GROUPS,
        {
            "an assignment beside an error": put("error_code", 110, lambda b: b.assignment),
        },
    ),
]

_T = "topics.0.partitions.0"
_B = f"{_T}.acknowledgement_batches.0"

OF_SHARES = [
    *broker_faults(
        "share",
        "ShareGroupHeartbeat",
        SHARE,
        {
            "another member id": put("member_id", "x", lambda b: b.member_epoch > 0),
        },
    ),
    *client_faults(
        "share",
        "ShareAcknowledge",
        SHARE,
        {
            "more types than records": put(f"{_B}.acknowledge_types", [1] * 50),
        },
    ),
    *broker_faults(
        "share",
        "ShareAcknowledge",
        SHARE,
        {
            "ShareAcknowledge leaves out a partition": drop("responses.0.partitions.0"),
        },
    ),
]


def _also_standby(body, sent, script):
    body["standby_tasks"] = deepcopy(body.active_tasks)
    return bool(body.active_tasks)


OF_STREAMS = [
    *client_faults(
        "streams",
        "StreamsGroupHeartbeat",
        STREAMS,
        {
            "joins without a timeout": put(
                "rebalance_timeout_ms", -1, lambda b: b.member_epoch == 0
            ),
        },
    ),
    *broker_faults(
        "streams",
        "StreamsGroupHeartbeat",
        STREAMS,
        {
            "a task in two roles": _also_standby,
        },
    ),
]

OF_TELEMETRY = [
    *broker_faults(
        "telemetry",
        "PushTelemetry",
        TELEMETRY,
        {"negative throttle time": put("throttle_time_ms", -5)},
    ),
]


METADATA = [
    *broker_faults(
        "metadata",
        "Metadata",
        CLIENTS,
        {
            "in-sync replica that is none": put(f"{_T}.isr_nodes", [99]),
            "broker port 70000": put("brokers.0.port", 70000),
        },
    ),
    *broker_faults(
        "metadata",
        "DescribeTopicPartitions",
        ("kafka4-java-tools", *ADMIN),
        {"DescribeTopicPartitions a topic nobody asked for": add_item("topics.0", "name", "x")},
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
            "settings beside an error": put(
                "results.0.error_code", 29, lambda b: b.results[0].configs
            ),
        },
    ),
    *broker_faults(
        "admin",
        "ListGroups",
        ("kafka4-java-tools", "kafka4-sweep-clients-2"),
        {"a group listed of type strange": put("groups.0.group_type", "strange")},
    ),
]

LOGIN = [
    *broker_faults(
        "sasl",
        "SaslHandshake",
        SASL,
        {
            "a listed mechanism is refused": put("error_code", 33, has_no_error),
        },
    ),
]

FAULTS = [*CLASSIC, *NEW, *OF_SHARES, *OF_STREAMS, *OF_TELEMETRY, *METADATA, *OF_ADMIN, *LOGIN]
