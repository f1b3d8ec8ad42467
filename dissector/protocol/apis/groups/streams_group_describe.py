"""
StreamsGroupDescribe (key 89): describe streams groups.

Source: Kafka, StreamsGroupDescribeRequest.json and StreamsGroupDescribeResponse.json; KIP-1071,
KIP-1331 (the topology description of v1), KIP-1357 (`assignor_name`).
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

_NODE = (
    String("name"),
    Int8("node_type"),
    Array("source_topics", of=String, entity="topicName"),
    String("sink_topic", null="0+", default=None, entity="topicName"),
    Array("stores", of=String),
    Array("successors", of=String),
)

StreamsGroupDescribeRequest = message(89, "0-1", flexible="0+")[
    Array("group_ids", of=String, entity="groupId"),
    Bool("include_authorized_operations"),
    Bool("include_topology_description", "1+", default=False),
]

StreamsGroupDescribeResponse = message(89, "0-1", flexible="0+")[
    Int32("throttle_time_ms"),
    Array("groups")[
        Int16("error_code"),
        String("error_message", null="0+", default=None),
        String("group_id", entity="groupId"),
        String("group_state"),
        Int32("group_epoch"),
        Int32("assignment_epoch"),
        Struct("topology", null="0+", default=None)[
            Int32("epoch"),
            Array("subtopologies", null="0+", default=None)[
                String("subtopology_id"),
                Array("source_topics", of=String, entity="topicName"),
                Array("repartition_sink_topics", of=String, entity="topicName"),
                Array("state_changelog_topics")[
                    String("name", entity="topicName"),
                    Int32("partitions"),
                    Int16("replication_factor"),
                    Array("topic_configs")[
                        String("key"),
                        String("value"),
                    ],
                ],
                Array("repartition_source_topics")[
                    String("name", entity="topicName"),
                    Int32("partitions"),
                    Int16("replication_factor"),
                    Array("topic_configs")[
                        String("key"),
                        String("value"),
                    ],
                ],
            ],
        ],
        Array("members")[
            String("member_id"),
            Int32("member_epoch"),
            String("instance_id", null="0+", default=None),
            String("rack_id", null="0+", default=None),
            String("client_id"),
            String("client_host"),
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
            Array("task_offsets")[
                String("subtopology_id"),
                Int32("partition"),
                Int64("offset"),
            ],
            Array("task_end_offsets")[
                String("subtopology_id"),
                Int32("partition"),
                Int64("offset"),
            ],
            Struct("assignment")[
                Array("active_tasks")[
                    String("subtopology_id"),
                    Array("partitions", of=Int32),
                ],
                Array("standby_tasks")[
                    String("subtopology_id"),
                    Array("partitions", of=Int32),
                ],
                Array("warmup_tasks")[
                    String("subtopology_id"),
                    Array("partitions", of=Int32),
                ],
            ],
            Struct("target_assignment")[
                Array("active_tasks")[
                    String("subtopology_id"),
                    Array("partitions", of=Int32),
                ],
                Array("standby_tasks")[
                    String("subtopology_id"),
                    Array("partitions", of=Int32),
                ],
                Array("warmup_tasks")[
                    String("subtopology_id"),
                    Array("partitions", of=Int32),
                ],
            ],
            Bool("is_classic"),
        ],
        Int32("authorized_operations", default=-2147483648),
        Struct("topology_description", "1+", null="1+", default=None)[
            Array("subtopologies")[
                String("subtopology_id"),
                Array("nodes")[_NODE],
            ],
            Array("global_stores")[
                Struct("source")[_NODE],
                Struct("processor")[_NODE],
            ],
        ],
        Int8("topology_description_status", "1+", default=0),
        String("assignor_name", "1+", null="1+", default=None, ignorable=True),
    ],
]
