"""
OffsetCommit (key 8): commit a group's offsets.

v0 stored offsets in ZooKeeper; v1+ is handled by the group coordinator.

Source: Kafka, OffsetCommitRequest.json and OffsetCommitResponse.json; KIP-211 (v5), KIP-320 (v6),
KIP-345 (v7), KIP-848 (v9), KIP-516 (v10).
"""

from dissector.protocol.schema import Array, Int16, Int32, Int64, String, Uuid, message

OffsetCommitRequest = message(8, "0-10", flexible="8+")[
    String("group_id", entity="groupId"),
    Int32("generation_id_or_member_epoch", "1+", default=-1, ignorable=True),
    String("member_id", "1+", ignorable=True),
    String("group_instance_id", "7+", null="7+", default=None),
    Int64("retention_time_ms", "2-4", default=-1, ignorable=True),
    Array("topics")[
        Uuid("topic_id", "10+", ignorable=True),
        String("name", "0-9", ignorable=True, entity="topicName"),
        Array("partitions")[
            Int32("partition_index"),
            Int64("committed_offset"),
            Int32("committed_leader_epoch", "6+", default=-1, ignorable=True),
            Int64("commit_timestamp", "1", default=-1),
            String("committed_metadata", null="0+"),
        ],
    ],
]

OffsetCommitResponse = message(8, "0-10", flexible="8+")[
    Int32("throttle_time_ms", "3+", ignorable=True),
    Array("topics")[
        Uuid("topic_id", "10+", ignorable=True),
        String("name", "0-9", ignorable=True, entity="topicName"),
        Array("partitions")[
            Int32("partition_index"),
            Int16("error_code"),
        ],
    ],
]
