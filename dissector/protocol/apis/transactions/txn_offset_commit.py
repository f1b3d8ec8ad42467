"""
TxnOffsetCommit (key 28): commit a group's offsets within a transaction.

Source: Kafka, TxnOffsetCommitRequest.json and TxnOffsetCommitResponse.json; KIP-98, KIP-447 (v3),
KIP-890, KIP-1319 (v6).
"""

from dissector.protocol.schema import Array, Int16, Int32, Int64, String, Uuid, message

TxnOffsetCommitRequest = message(28, "0-6", flexible="3+")[
    String("transactional_id", entity="transactionalId"),
    String("group_id", entity="groupId"),
    Int64("producer_id", entity="producerId"),
    Int16("producer_epoch"),
    Int32("generation_id_or_member_epoch", "3+", default=-1),
    String("member_id", "3+", default=""),
    String("group_instance_id", "3+", null="3+", default=None),
    Array("topics")[
        String("name", "0-5", ignorable=True, entity="topicName"),
        Uuid("topic_id", "6+", ignorable=True),
        Array("partitions")[
            Int32("partition_index"),
            Int64("committed_offset"),
            Int32("committed_leader_epoch", "2+", default=-1, ignorable=True),
            String("committed_metadata", null="0+"),
        ],
    ],
]

TxnOffsetCommitResponse = message(28, "0-6", flexible="3+")[
    Int32("throttle_time_ms"),
    Array("topics")[
        String("name", "0-5", ignorable=True, entity="topicName"),
        Uuid("topic_id", "6+", ignorable=True),
        Array("partitions")[
            Int32("partition_index"),
            Int16("error_code"),
        ],
    ],
]
