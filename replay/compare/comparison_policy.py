"""
How the fields of answers are compared, as data: by role, and the few that go by their place.

Source: what a broker gives and what only its clock decides: Kafka's message definitions
(clients/src/main/resources/common/message) and KIP-219, KIP-227, KIP-320.
"""

from __future__ import annotations

from replay.client.router import MISROUTED
from replay.fields.field_layout import Role

IGNORED_ROLES = frozenset(
    {
        Role.THROTTLE,
        Role.TIMESTAMP,
        Role.HOST,
        Role.PORT,
        Role.RACK,
        Role.CLUSTER_ID,
        Role.DIRECTORY,
        Role.REPLICAS,
        Role.INCARNATION,
        Role.ERROR_MESSAGE,
        Role.SIZE,
        Role.EPOCH,
        Role.GROUP_EPOCH,
        Role.TOKEN,
    }
)
"""Every cluster has its own, at every time another; an error's text goes with its code."""

COMPARED_ROLES = frozenset(Role) - IGNORED_ROLES

ASSIGNED_ROLES = frozenset(
    {
        Role.APPEND_TIME,
        Role.BROKER_ID,
        Role.LEADER_EPOCH,
        Role.FETCHED_EPOCH,
        Role.TOPIC_ID,
        Role.PRODUCER_ID,
        Role.PRODUCER_EPOCH,
        Role.SESSION_ID,
        Role.GENERATION,
        Role.MEMBER_EPOCH,
        Role.MEMBER,
        Role.CLIENT_INSTANCE,
        Role.SUBSCRIPTION,
    }
)
"""
A broker gives them as it likes: where nothing maps them it counts only whether there is one.
"""

LAYOUT_ROLES = frozenset({Role.BROKER_ID, Role.DIRECTORY})
"""Lists of these, and of structs that go by these, say how a cluster is laid out."""

COUNT_ONLY_ROLES = frozenset({Role.ASSIGNED})
"""
Lists of which it counts how long they are. In a share group which member gets which partition
follows from the ids of topics, which every broker makes up: SimpleAssignor.java.
"""

TASK_ARRAYS = frozenset({"active_tasks", "standby_tasks", "warmup_tasks"})
"""
Arrays of which it counts how many partitions all elements have: which member of a streams group
gets which task follows from the ids of members and processes (KIP-1071).
"""

STATUS = "status"
"""Array of what a streams group waits for: what a target that is ready sooner need not wait for."""

VOLATILE_OFFSETS = frozenset({"high_watermark", "last_stable_offset", "log_start_offset"})
"""Offsets that others move: by producing, by retention. It counts only whether they are known."""

BROKER_SETTINGS = frozenset(
    {
        "advertised.listeners",
        "broker.id",
        "broker.rack",
        "controller.quorum.bootstrap.servers",
        "controller.quorum.voters",
        "listeners",
        "log.dir",
        "log.dirs",
        "metadata.log.dir",
        "node.id",
        "ssl.keystore.location",
        "ssl.truststore.location",
        "zookeeper.connect",
    }
)
"""Settings of which every broker has its own: where it is, what it is called, its directories."""

TRANSIENT_ERRORS = frozenset(
    {
        "COORDINATOR_LOAD_IN_PROGRESS",
        "COORDINATOR_NOT_AVAILABLE",
        "LEADER_NOT_AVAILABLE",
        "CONCURRENT_TRANSACTIONS",
        "REBALANCE_IN_PROGRESS",
        "DELEGATION_TOKEN_NOT_FOUND",
        "UNSTABLE_OFFSET_COMMIT",
    }
)
"""Captured errors that said no more than `not yet`: a target that is ready sooner does the same."""

STABLE_STATE = "Stable"
"""States of groups that the broker assigns: heartbeats of the members bring them to rest."""

MISROUTED_ERRORS = MISROUTED
"""Captured errors of a broker that was not the one to ask: the replay asks the one that is."""

CREATED_TOPIC_ERRORS = frozenset(
    {
        ("UNKNOWN_TOPIC_OR_PARTITION", "NONE"),
        ("UNKNOWN_TOPIC_ID", "NONE"),
        ("NONE", "TOPIC_ALREADY_EXISTS"),
    }
)
"""Captured and live errors that only tell that a topic was created for the replay before."""

LIST_ALL_ARRAYS = {
    "Metadata": ("topics", "topics"),
    "ListGroups": ("", "groups"),
    "ListTransactions": ("", "transaction_states"),
    "DescribeTopicPartitions": ("topics", "topics"),
    "ListConfigResources": ("", "config_resources"),
    "DescribeAcls": ("", "resources"),
    "DescribeClientQuotas": ("", "entries"),
    "DescribeDelegationToken": ("", "tokens"),
}
"""
API -> field of the request that asks for all where it is null or empty (none: it always does), and
the array of the answer, in which the target may then have more than the capture.
"""

INCREMENTAL_ARRAYS = frozenset({"responses", "partitions"})
"""Arrays of an answer within a fetch session, which have only what changed (KIP-227)."""

UNORDERED_FIELDS = frozenset({"partition_responses", "base_offset"})
"""
Fields of topics and partitions in answers to Produce. Their order follows from ids of topics, which
every broker makes up: Kafka collects them in a hash map.
"""

FOLDED_ARRAYS = {"FindCoordinator": "coordinators", "OffsetFetch": "groups"}
"""Arrays of answers whose one element stood in the body itself in older versions."""
