"""
Group coordinator: keys and values of `__consumer_offsets`, streams groups.

Declared as Kafka 4.1 and later write them. For nulls and defaults see `group_coordinator`.

Source: Kafka, group-coordinator/src/main/resources/common/message; KIP-1071, KIP-1263
(`assignment_timestamp`), KIP-1331 (the epochs of topology descriptions).
"""

from dissector.protocol.schema import (
    Array,
    Int8,
    Int16,
    Int32,
    Int64,
    String,
    Struct,
    Uint16,
    message,
)

StreamsGroupMetadataKey = message(17, "17")[String("group_id"),]

StreamsGroupMetadataValue = message(17, "0", flexible="0+")[
    Int32("epoch"),
    Int64("metadata_hash"),
    Int32("validated_topology_epoch", tag=0, default=-1),
    Array("last_assignment_configs", null="0+", tag=1)[
        String("key"),
        String("value"),
    ],
    Int32("stored_description_topology_epoch", tag=2, default=-1),
    Int32("failed_description_topology_epoch", tag=3, default=-1),
]

StreamsGroupMemberMetadataKey = message(19, "19")[
    String("group_id"),
    String("member_id"),
]

StreamsGroupMemberMetadataValue = message(19, "0", flexible="0+")[
    String("instance_id", null="0+"),
    String("rack_id", null="0+"),
    String("client_id"),
    String("client_host"),
    Int32("rebalance_timeout_ms", default=-1),
    Int32("topology_epoch"),
    String("process_id"),
    Struct("user_endpoint", null="0+", default=None)[
        String("host"),
        Uint16("port"),
    ],
    Array("client_tags")[
        String("key"),
        String("value"),
    ],
]

StreamsGroupTargetAssignmentMetadataKey = message(20, "20")[String("group_id"),]

StreamsGroupTargetAssignmentMetadataValue = message(20, "0", flexible="0+")[
    Int32("assignment_epoch"),
    Int64("assignment_timestamp", tag=0, default=0, ignorable=True),
]

StreamsGroupTargetAssignmentMemberKey = message(21, "21")[
    String("group_id"),
    String("member_id"),
]

_TARGET_TASKS = (
    String("subtopology_id"),
    Array("partitions", of=Int32),
)

StreamsGroupTargetAssignmentMemberValue = message(21, "0", flexible="0+")[
    Array("active_tasks")[_TARGET_TASKS],
    Array("standby_tasks")[_TARGET_TASKS],
    Array("warmup_tasks")[_TARGET_TASKS],
]

StreamsGroupCurrentMemberAssignmentKey = message(22, "22")[
    String("group_id"),
    String("member_id"),
]

_CURRENT_TASKS = (
    *_TARGET_TASKS,
    Array("assignment_epochs", of=Int32, null="0+", tag=0),
)

StreamsGroupCurrentMemberAssignmentValue = message(22, "0", flexible="0+")[
    Int32("member_epoch"),
    Int32("previous_member_epoch"),
    Int8("state"),
    Array("active_tasks")[_CURRENT_TASKS],
    Array("standby_tasks")[_CURRENT_TASKS],
    Array("warmup_tasks")[_CURRENT_TASKS],
    Array("active_tasks_pending_revocation")[_CURRENT_TASKS],
    Array("standby_tasks_pending_revocation")[_CURRENT_TASKS],
    Array("warmup_tasks_pending_revocation")[_CURRENT_TASKS],
]

StreamsGroupTopologyKey = message(23, "23")[String("group_id"),]

_TOPIC = (
    String("name"),
    Int32("partitions"),
    Int16("replication_factor"),
    Array("topic_configs")[
        String("key", kafka="key"),
        String("value", kafka="value"),
    ],
)

StreamsGroupTopologyValue = message(23, "0", flexible="0+")[
    Int32("epoch"),
    Array("subtopologies")[
        String("subtopology_id"),
        Array("source_topics", of=String),
        Array("source_topic_regex", of=String),
        Array("state_changelog_topics")[_TOPIC],
        Array("repartition_sink_topics", of=String),
        Array("repartition_source_topics")[_TOPIC],
        Array("copartition_groups")[
            Array("source_topics", of=Int16),
            Array("source_topic_regex", of=Int16),
            Array("repartition_source_topics", of=Int16),
        ],
    ],
]
