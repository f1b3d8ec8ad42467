"""
OffsetDelete (key 47): delete a group's committed offsets.

Never flexible.

Source: Kafka, OffsetDeleteRequest.json and OffsetDeleteResponse.json; KIP-496.
"""

from dissector.protocol.schema import Array, Int16, Int32, String, message

OffsetDeleteRequest = message(47, "0")[
    String("group_id", entity="groupId"),
    Array("topics")[
        String("name", key=True, entity="topicName"),
        Array("partitions")[Int32("partition_index"),],
    ],
]

OffsetDeleteResponse = message(47, "0")[
    Int16("error_code"),
    Int32("throttle_time_ms", ignorable=True),
    Array("topics")[
        String("name", key=True, entity="topicName"),
        Array("partitions")[
            Int32("partition_index", key=True),
            Int16("error_code"),
        ],
    ],
]
