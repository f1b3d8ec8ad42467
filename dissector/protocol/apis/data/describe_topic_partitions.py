"""
DescribeTopicPartitions (key 75): describe topics and their partitions, page by page.

Source: Kafka, DescribeTopicPartitionsRequest.json and DescribeTopicPartitionsResponse.json;
KIP-966.
"""

from dissector.protocol.schema import Array, Bool, Int16, Int32, String, Struct, Uuid, message

DescribeTopicPartitionsRequest = message(75, "0", flexible="0+")[
    Array("topics")[String("name", entity="topicName"),],
    Int32("response_partition_limit", default=2000),
    Struct("cursor", null="0+", default=None)[
        String("topic_name", entity="topicName"),
        Int32("partition_index"),
    ],
]

DescribeTopicPartitionsResponse = message(75, "0", flexible="0+")[
    Int32("throttle_time_ms", ignorable=True),
    Array("topics")[
        Int16("error_code"),
        String("name", null="0+", key=True, entity="topicName"),
        Uuid("topic_id", ignorable=True),
        Bool("is_internal", default=False, ignorable=True),
        Array("partitions")[
            Int16("error_code"),
            Int32("partition_index"),
            Int32("leader_id", entity="brokerId"),
            Int32("leader_epoch", default=-1, ignorable=True),
            Array("replica_nodes", of=Int32, entity="brokerId"),
            Array("isr_nodes", of=Int32, entity="brokerId"),
            Array("eligible_leader_replicas", of=Int32, null="0+", default=None, entity="brokerId"),
            Array("last_known_elr", of=Int32, null="0+", default=None, entity="brokerId"),
            Array("offline_replicas", of=Int32, ignorable=True, entity="brokerId"),
        ],
        Int32("topic_authorized_operations", default=-2147483648),
    ],
    Struct("next_cursor", null="0+", default=None)[
        String("topic_name", entity="topicName"),
        Int32("partition_index"),
    ],
]
