"""
Meanings of numeric fields: the name of an error, the time of a timestamp, "none".

One table by field name, because Kafka uses a name for one concept; the few names with different
meanings are distinguished by their API.

Source: the enumerations of Kafka's clients (AclOperation, ConfigResource, ScramMechanism,
IsolationLevel, RecordState, ...) and the comments of its message definitions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dissector.protocol.apis import api_name
from dissector.protocol.error_codes import error_name
from dissector.view.text.value_text import time_ms_text

Meaning = Callable[[int], str]


def meaning(name: str, value: object, owner: str = "") -> str:
    """
    Return the meaning of a field's value; empty if the value needs no explanation.

    Args:
        name: The field, in snake_case; for an array element, the array.
        value: Its value.
        owner: The context of the field: `ListOffsets request`, `ConfigRecord`.
    """
    if isinstance(value, bool):
        return _BOOLEANS.get(name, {}).get(value, "")
    if not isinstance(value, int):
        return ""
    if name.endswith("error_code"):
        return error_name(value)
    annotate = (
        BY_OWNER.get((owner, name))
        or BY_OWNER.get((owner.partition(" ")[0], name))
        or BY_NAME.get(name)
    )
    if annotate is not None:
        return annotate(value)
    return _time(value) if name.endswith(("timestamp", "timestamp_ms")) else ""


def _enum(*words: str, start: int = 0) -> Meaning:
    """Return the meanings of an enumeration; `-` marks an unused number."""
    table = {start + n: word for n, word in enumerate(words) if word != "-"}
    return lambda value: table.get(value, "")


def _special_values(table: Mapping[int, str]) -> Meaning:
    return lambda value: table.get(value, "")


def _time(value: int) -> str:
    return "none" if value == -1 else time_ms_text(value)


def _offset_time(value: int) -> str:
    """Source: KIP-79, KIP-405 (-4), KIP-734 (-3), KIP-1005 (-5), KIP-1023 (-6)."""
    special = {
        -1: "latest",
        -2: "earliest",
        -3: "max timestamp",
        -4: "earliest local",
        -5: "latest tiered",
        -6: "earliest pending upload",
    }
    return special.get(value) or time_ms_text(value)


_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_OPERATIONS = (
    *("UNKNOWN", "ANY", "ALL", "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE"),
    *("CLUSTER_ACTION", "DESCRIBE_CONFIGS", "ALTER_CONFIGS", "IDEMPOTENT_WRITE"),
    *("CREATE_TOKENS", "DESCRIBE_TOKENS", "TWO_PHASE_COMMIT"),
)
_NOT_REQUESTED = -(2**31)


def _operations(value: int) -> str:
    """Name the operations of a bit set. Source: KIP-430."""
    if value == _NOT_REQUESTED:
        return "not requested"
    return ", ".join(word for bit, word in enumerate(_OPERATIONS) if value >> bit & 1) or "none"


def attributes(value: int) -> str:
    """Return the meaning of a record batch's attributes. Source: KIP-98, KIP-32, KIP-534."""
    codec = value & 7
    words = [_CODECS[codec] if codec < len(_CODECS) else f"codec {codec}"]
    words.append("LogAppendTime" if value & 0x08 else "CreateTime")
    flags = ((0x10, "transactional"), (0x20, "control"), (0x40, "delete horizon"))
    return ", ".join(words + [word for bit, word in flags if value & bit])


_NONE = _special_values({-1: "none"})
_UNKNOWN = _special_values({-1: "unknown"})
_BROKER_DEFAULT = _special_values({-1: "broker default"})
_MEMBER_EPOCH = _special_values({0: "joins", -1: "leaves", -2: "leaves temporarily"})
_CONFIG_RESOURCES = _special_values(
    {
        0: "UNKNOWN",
        2: "TOPIC",
        4: "BROKER",
        8: "BROKER_LOGGER",
        16: "CLIENT_METRICS",
        32: "GROUP",
    }
)
_CONFIG_SOURCES = _enum(
    "UNKNOWN",
    "TOPIC_CONFIG",
    "DYNAMIC_BROKER_CONFIG",
    "DYNAMIC_DEFAULT_BROKER_CONFIG",
    "STATIC_BROKER_CONFIG",
    "DEFAULT_CONFIG",
    "DYNAMIC_BROKER_LOGGER_CONFIG",
    "CLIENT_METRICS_CONFIG",
    "GROUP_CONFIG",
)
_CONTROL = _enum("unknown", "incremental", "full")
_PATTERNS = _enum("UNKNOWN", "ANY", "MATCH", "LITERAL", "PREFIXED")
_ACL_RESOURCES = _enum(
    "UNKNOWN", "ANY", "TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER"
)

BY_NAME: dict[str, Meaning] = {
    "acks": _special_values({-1: "all in-sync replicas", 0: "no response", 1: "the leader"}),
    "api_key": api_name,
    "request_api_key": api_name,
    "attributes": attributes,
    "timestamp_type": _enum("CreateTime", "LogAppendTime"),
    # Timestamps among the names in _time_ms; the other such names are durations.
    "log_append_time_ms": lambda value: "CreateTime is used" if value == -1 else _time(value),
    "transaction_start_time_ms": _time,
    # Special values without a specific meaning.
    **dict.fromkeys(("leader_id", "controller_id", "leader", "broker_id", "node_id"), _NONE),
    **dict.fromkeys(("producer_id", "producer_epoch", "base_sequence", "generation_id"), _NONE),
    **dict.fromkeys(("ongoing_txn_producer_id", "ongoing_txn_producer_epoch"), _NONE),
    **dict.fromkeys(("preferred_read_replica", "committed_offset"), _NONE),
    **dict.fromkeys(("current_txn_start_offset", "broker_epoch", "last_sequence"), _NONE),
    **dict.fromkeys(("leader_epoch", "current_leader_epoch", "last_fetched_epoch"), _UNKNOWN),
    **dict.fromkeys(("committed_leader_epoch", "partition_leader_epoch"), _UNKNOWN),
    **dict.fromkeys(("log_start_offset", "last_stable_offset", "high_watermark"), _UNKNOWN),
    **dict.fromkeys(("base_offset", "end_offset", "offset", "low_watermark"), _UNKNOWN),
    **dict.fromkeys(("total_bytes", "usable_bytes", "coordinator_epoch"), _UNKNOWN),
    **dict.fromkeys(("retention_time_ms", "max_lifetime_ms"), _BROKER_DEFAULT),
    "replica_id": _special_values({-1: "a consumer", -2: "a debugging consumer"}),
    # Enumerations.
    "isolation_level": _enum("READ_UNCOMMITTED", "READ_COMMITTED"),
    "key_type": _enum("GROUP", "TRANSACTION", "SHARE"),
    "resource_type": _ACL_RESOURCES,
    "resource_type_filter": _ACL_RESOURCES,
    "pattern_type": _PATTERNS,
    "pattern_type_filter": _PATTERNS,
    "resource_pattern_type": _PATTERNS,
    "operation": _enum(*_OPERATIONS),
    "permission_type": _enum("UNKNOWN", "ANY", "DENY", "ALLOW"),
    "authorized_operations": _operations,
    "topic_authorized_operations": _operations,
    "cluster_authorized_operations": _operations,
    "config_operation": _enum("SET", "DELETE", "APPEND", "SUBTRACT"),
    "config_source": _CONFIG_SOURCES,
    "config_type": _enum(
        *("UNKNOWN", "BOOLEAN", "STRING", "INT", "SHORT", "LONG", "DOUBLE", "LIST"),
        *("CLASS", "PASSWORD"),
    ),
    "resource_types": _CONFIG_RESOURCES,
    "election_type": _enum("PREFERRED", "UNCLEAN"),
    "endpoint_type": _enum("-", "brokers", "controllers"),
    "leader_recovery_state": _enum("RECOVERED", "RECOVERING"),
    "match_type": _enum("EXACT", "DEFAULT", "ANY"),
    "mechanism": _enum("UNKNOWN", "SCRAM-SHA-256", "SCRAM-SHA-512"),
    "security_protocol": _enum("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    "upgrade_type": _enum("UNKNOWN", "UPGRADE", "SAFE_DOWNGRADE", "UNSAFE_DOWNGRADE"),
    "compression_type": _enum(*_CODECS),
    "accepted_compression_types": _enum(*_CODECS),
    "member_type": _enum("unknown", "classic", "consumer", start=-1),
    "delivery_state": _enum("AVAILABLE", "ACQUIRED", "ACKNOWLEDGED", "-", "ARCHIVED"),
    "acknowledge_types": _enum("gap", "accept", "release", "reject", "renew"),
    "share_acquire_mode": _enum("batch optimized", "record limit"),
    "status_code": _enum(
        "stale topology",
        "missing source topics",
        "incorrectly partitioned topics",
        "missing internal topics",
        "shutdown application",
        "assignment delayed",
    ),
}

_STREAMS_NODES = _special_values({1: "source", 2: "processor", 3: "sink"})

BY_OWNER: dict[tuple[str, str], Meaning] = {
    ("ListOffsets request", "timestamp"): _offset_time,
    ("CreateTopics request", "num_partitions"): _BROKER_DEFAULT,
    ("CreateTopics request", "replication_factor"): _BROKER_DEFAULT,
    ("Fetch", "session_epoch"): _special_values({0: "a new session", -1: "no session, or its end"}),
    ("ShareFetch", "share_session_epoch"): _special_values({0: "a new session", -1: "its end"}),
    ("ShareAcknowledge", "share_session_epoch"): _special_values({-1: "its end"}),
    ("DescribeConfigs", "source"): _CONFIG_SOURCES,
    ("DescribeConfigs", "resource_type"): _CONFIG_RESOURCES,
    ("AlterConfigs", "resource_type"): _CONFIG_RESOURCES,
    ("IncrementalAlterConfigs", "resource_type"): _CONFIG_RESOURCES,
    ("ListConfigResources", "resource_type"): _CONFIG_RESOURCES,
    ("ConfigRecord", "resource_type"): _CONFIG_RESOURCES,
    ("ConsumerGroupHeartbeat", "member_epoch"): _MEMBER_EPOCH,
    ("ShareGroupHeartbeat", "member_epoch"): _MEMBER_EPOCH,
    ("StreamsGroupHeartbeat", "member_epoch"): _MEMBER_EPOCH,
    ("StreamsGroupDescribe", "topology_description_status"): _special_values(
        {0: "not requested", 1: "not stored", 2: "not available", 3: "available"}
    ),
    ("StreamsGroupDescribe", "node_type"): _STREAMS_NODES,
    ("StreamsGroupTopologyDescriptionUpdate", "node_type"): _STREAMS_NODES,
    ("LeaderAndIsr", "type"): _CONTROL,
    ("UpdateMetadata", "type"): _CONTROL,
}

_BOOLEANS: Mapping[str, Mapping[Any, str]] = {
    "committed": {True: "commit", False: "abort"},
    "transaction_result": {True: "commit", False: "abort"},
}
