"""
AlterShareGroupOffsets (key 91): change the start offsets of a share group.

Source: Kafka, AlterShareGroupOffsetsRequest.json and AlterShareGroupOffsetsResponse.json; KIP-932.
"""

from dissector.protocol.schema import Array, Int16, Int32, Int64, String, Uuid, message

AlterShareGroupOffsetsRequest = message(91, "0", flexible="0+")[
    String("group_id", entity="groupId"),
    Array("topics")[
        String("topic_name", key=True, entity="topicName"),
        Array("partitions")[
            Int32("partition_index"),
            Int64("start_offset"),
        ],
    ],
]

AlterShareGroupOffsetsResponse = message(91, "0", flexible="0+")[
    Int32("throttle_time_ms"),
    Int16("error_code"),
    String("error_message", null="0+", default=None),
    Array("responses")[
        String("topic_name", key=True, entity="topicName"),
        Uuid("topic_id"),
        Array("partitions")[
            Int32("partition_index"),
            Int16("error_code"),
            String("error_message", null="0+", default=None),
        ],
    ],
]
