"""
OffsetFetch (key 9): read a group's committed offsets.

v2+ requests all partitions by null.
v8+ requests several groups at once.

Source: Kafka, OffsetFetchRequest.json and OffsetFetchResponse.json; KIP-320 (v5), KIP-447 (v7),
KIP-709 (v8), KIP-848 (v9), KIP-516 (v10).
"""

from dissector.protocol.schema import Array, Bool, Int16, Int32, Int64, String, Uuid, message

OffsetFetchRequest = message(9, "0-10", flexible="6+")[
    Array("groups", "8+")[
        String("group_id", entity="groupId"),
        String("member_id", "9+", null="9+", default=None, ignorable=True),
        Int32("member_epoch", "9+", default=-1, ignorable=True),
        Array("topics", null="8+")[
            Uuid("topic_id", "10+", ignorable=True),
            String("name", "8-9", ignorable=True, entity="topicName"),
            Array("partition_indexes", of=Int32),
        ],
    ],
    String("group_id", "0-7", entity="groupId"),
    Array("topics", "0-7", null="2-7")[
        String("name", entity="topicName"),
        Array("partition_indexes", of=Int32),
    ],
    Bool("require_stable", "7+", default=False),
]

OffsetFetchResponse = message(9, "0-10", flexible="6+")[
    Int32("throttle_time_ms", "3+", ignorable=True),
    Array("groups", "8+")[
        String("group_id", entity="groupId"),
        Array("topics")[
            Uuid("topic_id", "10+", ignorable=True),
            String("name", "8-9", ignorable=True, entity="topicName"),
            Array("partitions")[
                Int32("partition_index"),
                Int64("committed_offset"),
                Int32("committed_leader_epoch", default=-1, ignorable=True),
                String("metadata", null="8+"),
                Int16("error_code"),
            ],
        ],
        Int16("error_code", default=0),
    ],
    Array("topics", "0-7")[
        String("name", entity="topicName"),
        Array("partitions")[
            Int32("partition_index"),
            Int64("committed_offset"),
            Int32("committed_leader_epoch", "5-7", default=-1, ignorable=True),
            String("metadata", null="0-7"),
            Int16("error_code"),
        ],
    ],
    Int16("error_code", "2-7", default=0, ignorable=True),
]
