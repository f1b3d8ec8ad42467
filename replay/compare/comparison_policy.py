"""
Comparison policy as data: how fields of responses are compared, by role, and exceptions by name.

Source: values that a broker assigns, and values that depend on its clock: Kafka's message
definitions (clients/src/main/resources/common/message) and KIP-219, KIP-227, KIP-320.
"""

from __future__ import annotations

from cluster.client.router import MISROUTED
from dissector.protocol.field_roles import Role

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
"""
They differ between clusters, or change with time; an error message follows from its error code.
"""

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
"""A broker assigns them freely: without a mapping, only their presence is compared."""

LAYOUT_ROLES = frozenset({Role.BROKER_ID, Role.DIRECTORY})
"""Arrays of these, and of structs keyed by these, describe the layout of the cluster."""

COUNT_ONLY_ROLES = frozenset({Role.ASSIGNED})
"""
Arrays compared by length. In a share group, the assignment of partitions depends on topic ids,
which every broker generates: SimpleAssignor.java.
"""

TASK_ARRAYS = frozenset({"active_tasks", "standby_tasks", "warmup_tasks"})
"""
Arrays compared by the number of partitions in all elements: the assignment of a streams group's
tasks depends on the ids of members and processes (KIP-1071).
"""

STATUS = "status"
"""
Array of the conditions that a streams group waits for; a target that is ready sooner has fewer.
"""

VOLATILE_OFFSETS = frozenset({"high_watermark", "last_stable_offset", "log_start_offset"})
"""
Offsets that change independently of the request, by Produce or retention. Only their presence is
compared.
"""

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
"""Settings that differ between brokers: addresses, names and directories."""

TRANSIENT_ERRORS = frozenset(
    {
        "COORDINATOR_LOAD_IN_PROGRESS",
        "COORDINATOR_NOT_AVAILABLE",
        "LEADER_NOT_AVAILABLE",
        "CONCURRENT_TRANSACTIONS",
        "REBALANCE_IN_PROGRESS",
        "DELEGATION_TOKEN_NOT_FOUND",
        "UNSTABLE_OFFSET_COMMIT",
        "ELECTION_NOT_NEEDED",
    }
)
"""
Captured errors that mean no more than `not yet`, or `already`: a target that is ready sooner, or
later, returns none.
"""

STABLE_STATE = "Stable"
"""State that groups with broker-side assignment reach through the heartbeats of their members."""

MISROUTED_ERRORS = MISROUTED
"""Captured errors of a request to the wrong broker; the replay sends it to the right one."""

CREATED_TOPIC_ERRORS = frozenset(
    {
        ("UNKNOWN_TOPIC_OR_PARTITION", "NONE"),
        ("UNKNOWN_TOPIC_ID", "NONE"),
        ("NONE", "TOPIC_ALREADY_EXISTS"),
    }
)
"""Captured and live errors that differ only because the topic was created for the replay before."""

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
API -> field of the request that requests all elements if it is null or empty (empty if the API
always returns all), and the array of the response, which may then have additional elements on the
target.
"""

INCREMENTAL_ARRAYS = frozenset({"responses", "partitions"})
"""Arrays of a response in a fetch session, which contain only changes (KIP-227)."""

UNORDERED_FIELDS = frozenset({"partition_responses", "base_offset", "records"})
"""
Fields of topics and partitions in Produce responses, and of fetched partitions. The order of the
former depends on topic ids, which every broker generates: Kafka collects them in a hash map. That
of the latter depends on earlier responses: a session moves partitions with records to its end.
Source: ReplicaManager.appendRecords, FetchSession.scala (KIP-227).
"""

FOLDED_ARRAYS = {"FindCoordinator": "coordinators", "OffsetFetch": "groups"}
"""Arrays of responses with one element that older versions have in the body itself."""
