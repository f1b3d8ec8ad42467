"""
StreamsGroupDescribe (key 89): describe streams groups.

Source: Kafka, StreamsGroupDescribeRequest.json and StreamsGroupDescribeResponse.json; KIP-1071.
"""

from dissector.protocol.schema import (
    Array,
    Bool,
    Int16,
    Int32,
    Int64,
    String,
    Struct,
    Uint16,
    message,
)

StreamsGroupDescribeRequest = message(89, "0", flexible="0+")[
    Array("group_ids", of=String),
    Bool("include_authorized_operations"),
]

StreamsGroupDescribeResponse = message(89, "0", flexible="0+")[
    Int32("throttle_time_ms"),
    Array("groups")[
        Int16("error_code"),
        String("error_message", null="0+"),
        String("group_id"),
        String("group_state"),
        Int32("group_epoch"),
        Int32("assignment_epoch"),
        Struct("topology", null="0+")[
            Int32("epoch"),
            Array("subtopologies", null="0+")[
                String("subtopology_id"),
                Array("source_topics", of=String, entity="topicName"),
                Array("repartition_sink_topics", of=String, entity="topicName"),
                Array("state_changelog_topics")[
                    String("name"),
                    Int32("partitions"),
                    Int16("replication_factor"),
                    Array("topic_configs")[
                        String("key"),
                        String("value"),
                    ],
                ],
                Array("repartition_source_topics")[
                    String("name"),
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
            String("instance_id", null="0+"),
            String("rack_id", null="0+"),
            String("client_id"),
            String("client_host"),
            Int32("topology_epoch"),
            String("process_id"),
            Struct("user_endpoint", null="0+")[
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
        Int32("authorized_operations"),
    ],
]
