"""
StreamsGroupHeartbeat (key 88): join, stay in or leave a streams group.

Source: Kafka, StreamsGroupHeartbeatRequest.json and StreamsGroupHeartbeatResponse.json; KIP-1071,
KIP-1331 (v1).
"""

from dissector.protocol.schema import (
    Array,
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    String,
    Struct,
    Uint16,
    message,
)

StreamsGroupHeartbeatRequest = message(88, "0-1", flexible="0+")[
    String("group_id", entity="groupId"),
    String("member_id"),
    Int32("member_epoch"),
    Int32("endpoint_information_epoch"),
    String("instance_id", null="0+", default=None),
    String("rack_id", null="0+", default=None),
    Int32("rebalance_timeout_ms", default=-1),
    Struct("topology", null="0+", default=None)[
        Int32("epoch"),
        Array("subtopologies")[
            String("subtopology_id"),
            Array("source_topics", of=String, entity="topicName"),
            Array("source_topic_regex", of=String),
            Array("state_changelog_topics")[
                String("name", entity="topicName"),
                Int32("partitions"),
                Int16("replication_factor"),
                Array("topic_configs")[
                    String("key"),
                    String("value"),
                ],
            ],
            Array("repartition_sink_topics", of=String, entity="topicName"),
            Array("repartition_source_topics")[
                String("name", entity="topicName"),
                Int32("partitions"),
                Int16("replication_factor"),
                Array("topic_configs")[
                    String("key"),
                    String("value"),
                ],
            ],
            Array("copartition_groups")[
                Array("source_topics", of=Int16),
                Array("source_topic_regex", of=Int16),
                Array("repartition_source_topics", of=Int16),
            ],
        ],
    ],
    Array("active_tasks", null="0+", default=None)[
        String("subtopology_id"),
        Array("partitions", of=Int32),
    ],
    Array("standby_tasks", null="0+", default=None)[
        String("subtopology_id"),
        Array("partitions", of=Int32),
    ],
    Array("warmup_tasks", null="0+", default=None)[
        String("subtopology_id"),
        Array("partitions", of=Int32),
    ],
    String("process_id", null="0+", default=None),
    Struct("user_endpoint", null="0+", default=None)[
        String("host"),
        Uint16("port"),
    ],
    Array("client_tags", null="0+", default=None)[
        String("key"),
        String("value"),
    ],
    Array("task_offsets", null="0+", default=None)[
        String("subtopology_id"),
        Int32("partition"),
        Int64("offset"),
    ],
    Array("task_end_offsets", null="0+", default=None)[
        String("subtopology_id"),
        Int32("partition"),
        Int64("offset"),
    ],
    Bool("shutdown_application", default=False),
]

StreamsGroupHeartbeatResponse = message(88, "0-1", flexible="0+")[
    Int32("throttle_time_ms"),
    Int16("error_code"),
    String("error_message", null="0+", default=None),
    String("member_id"),
    Int32("member_epoch"),
    Int32("heartbeat_interval_ms"),
    Int32("acceptable_recovery_lag_legacy", "0"),
    Int32("task_offset_interval_ms"),
    Int64("acceptable_recovery_lag", "1+", default=-1, ignorable=True),
    Array("status", null="0+")[
        Int8("status_code"),
        String("status_detail"),
    ],
    Array("active_tasks", null="0+", default=None)[
        String("subtopology_id"),
        Array("partitions", of=Int32),
    ],
    Array("standby_tasks", null="0+", default=None)[
        String("subtopology_id"),
        Array("partitions", of=Int32),
    ],
    Array("warmup_tasks", null="0+", default=None)[
        String("subtopology_id"),
        Array("partitions", of=Int32),
    ],
    Bool("topology_description_required", "1+", default=False),
    Int32("endpoint_information_epoch"),
    Array("partitions_by_user_endpoint", null="0+", default=None)[
        Struct("user_endpoint")[
            String("host"),
            Uint16("port"),
        ],
        Array("active_partitions")[
            String("topic", entity="topicName"),
            Array("partitions", of=Int32),
        ],
        Array("standby_partitions")[
            String("topic", entity="topicName"),
            Array("partitions", of=Int32),
        ],
    ],
]
