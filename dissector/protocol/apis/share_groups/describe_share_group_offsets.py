"""
DescribeShareGroupOffsets (key 90): describe the start offsets of share groups.

Source: Kafka, DescribeShareGroupOffsetsRequest.json and DescribeShareGroupOffsetsResponse.json;
KIP-932.
"""

from dissector.protocol.schema import Array, Int16, Int32, Int64, String, Uuid, message

DescribeShareGroupOffsetsRequest = message(90, "0-1", flexible="0+")[
    Array("groups")[
        String("group_id", entity="groupId"),
        Array("topics", null="0+")[
            String("topic_name", entity="topicName"),
            Array("partitions", of=Int32),
        ],
    ],
]

DescribeShareGroupOffsetsResponse = message(90, "0-1", flexible="0+")[
    Int32("throttle_time_ms"),
    Array("groups")[
        String("group_id", entity="groupId"),
        Array("topics")[
            String("topic_name", entity="topicName"),
            Uuid("topic_id"),
            Array("partitions")[
                Int32("partition_index"),
                Int64("start_offset"),
                Int32("leader_epoch"),
                Int64("lag", "1+", default=-1, ignorable=True),
                Int16("error_code"),
                String("error_message", null="0+", default=None),
            ],
        ],
        Int16("error_code"),
        String("error_message", null="0+", default=None),
    ],
]
