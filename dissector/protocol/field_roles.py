"""What a field is to brokers (`Role`), and to those with whom a capture is shared (`ValueKind`)."""

from __future__ import annotations

from enum import Enum, StrEnum


class Role(StrEnum):
    """
    The meaning of a field for a broker.

    `assigned`: partitions that a coordinator distributes. `epoch`: an epoch used between brokers
    only. `group_epoch`: an epoch of a group that only brokers count. `fetched_epoch`: the leader
    epoch of the newest record that a consumer has. `kind`: the type of the name beside it.
    `replicas`: the replication factor of a topic; requested, or left to the cluster. `plain`: the
    same value for every broker.
    """

    PLAIN = "plain"
    BROKER_ID = "broker_id"
    EPOCH = "epoch"
    HOST = "host"
    PORT = "port"
    RACK = "rack"
    CLUSTER_ID = "cluster_id"
    DIRECTORY = "directory"
    INCARNATION = "incarnation"
    TOPIC = "topic"
    TOPIC_ID = "topic_id"
    TOPIC_PATTERN = "topic_pattern"
    PARTITION = "partition"
    REPLICAS = "replicas"
    ASSIGNED = "assigned"
    LEADER_EPOCH = "leader_epoch"
    FETCHED_EPOCH = "fetched_epoch"
    OFFSET = "offset"
    SIZE = "size"
    PRODUCER_ID = "producer_id"
    PRODUCER_EPOCH = "producer_epoch"
    SEQUENCE = "sequence"
    TRANSACTIONAL_ID = "transactional_id"
    TRANSACTIONAL_ID_PATTERN = "transactional_id_pattern"
    GROUP = "group"
    GROUP_EPOCH = "group_epoch"
    MEMBER = "member"
    INSTANCE = "instance"
    GENERATION = "generation"
    MEMBER_EPOCH = "member_epoch"
    EMBEDDED = "embedded"
    SESSION_ID = "session_id"
    SESSION_EPOCH = "session_epoch"
    TIMESTAMP = "timestamp"
    APPEND_TIME = "append_time"
    THROTTLE = "throttle"
    ERROR = "error"
    ERROR_MESSAGE = "error_message"
    RECORDS = "records"
    CLIENT_INSTANCE = "client_instance"
    SUBSCRIPTION = "subscription"
    TOKEN = "token"
    COORDINATOR_KEY = "coordinator_key"
    KIND = "kind"
    RESOURCE = "resource"
    CONFIG_NAME = "config_name"
    CONFIG_VALUE = "config_value"


class ValueKind(Enum):
    """
    The kind of a text, of bytes or of an id, by which a redaction replaces it.

    The values of one kind can be kept by its name, apart from those of `NEVER_KEPT`.
    """

    TOPIC = "topic"
    GROUP = "group"
    MEMBER = "member"
    CLIENT_ID = "client_id"
    TRANSACTIONAL_ID = "transactional_id"
    INSTANCE = "instance"
    HOST = "host"
    RACK = "rack"
    PRINCIPAL = "principal"
    RESOURCE = "resource"
    CONFIG = "config"
    DIRECTORY = "directory"
    CLUSTER_ID = "cluster_id"
    ID = "id"
    PRODUCER_ID = "producer_id"
    ERROR_TEXT = "error_text"
    REGEX = "regex"
    SUBTOPOLOGY = "subtopology"
    METADATA = "metadata"

    WORD = "word"
    """Kafka's own words; any other text is a name."""
    SETTING = "setting"
    """The name of a setting: Kafka's own stays."""
    COORDINATOR_KEY = "coordinator_key"
    SOFTWARE = "software"
    """The name or the version of a client."""
    SECRET = "secret"
    OPAQUE = "opaque"
    EMBEDDED = "embedded"
    RECORDS = "records"


NEVER_KEPT = frozenset(
    (
        ValueKind.WORD,
        ValueKind.SETTING,
        ValueKind.COORDINATOR_KEY,
        ValueKind.SOFTWARE,
        ValueKind.SECRET,
        ValueKind.OPAQUE,
        ValueKind.EMBEDDED,
        ValueKind.RECORDS,
    )
)

KEPT = tuple(kind.value for kind in ValueKind if kind not in NEVER_KEPT)
"""Values of `--keep`."""
