"""
Group coordinator: keys and values of `__consumer_offsets`, share groups.

Declared as Kafka 4.1 and later write them. The early access release in 4.0 had other fields in the
same versions of ShareGroupMetadata and ShareGroupStatePartitionMetadata; such bytes do not match.
Only that release wrote ShareGroupPartitionMetadata.

Source: Kafka, group-coordinator/src/main/resources/common/message; KIP-932, KIP-1101
(`metadata_hash`), KIP-1263 (`assignment_timestamp`).
"""

from dissector.protocol.schema import Array, Int8, Int32, Int64, String, Uuid, message

ShareGroupPartitionMetadataKey = message(9, "9")[String("group_id"),]

ShareGroupPartitionMetadataValue = message(9, "0", flexible="0+")[
    Array("topics")[
        Uuid("topic_id"),
        String("topic_name"),
        Int32("num_partitions"),
        Array("partition_metadata")[
            Int32("partition"),
            Array("racks", of=String),
        ],
    ],
]

ShareGroupMemberMetadataKey = message(10, "10")[
    String("group_id"),
    String("member_id"),
]

ShareGroupMemberMetadataValue = message(10, "0", flexible="0+")[
    String("rack_id", null="0+"),
    String("client_id"),
    String("client_host"),
    Array("subscribed_topic_names", of=String),
]

ShareGroupMetadataKey = message(11, "11")[String("group_id"),]

ShareGroupMetadataValue = message(11, "0", flexible="0+")[
    Int32("epoch"),
    Int64("metadata_hash"),
]

ShareGroupTargetAssignmentMetadataKey = message(12, "12")[String("group_id"),]

ShareGroupTargetAssignmentMetadataValue = message(12, "0", flexible="0+")[
    Int32("assignment_epoch"),
    Int64("assignment_timestamp", tag=0, default=0, ignorable=True),
]

ShareGroupTargetAssignmentMemberKey = message(13, "13")[
    String("group_id"),
    String("member_id"),
]

ShareGroupTargetAssignmentMemberValue = message(13, "0", flexible="0+")[
    Array("topic_partitions")[
        Uuid("topic_id"),
        Array("partitions", of=Int32),
    ],
]

ShareGroupCurrentMemberAssignmentKey = message(14, "14")[
    String("group_id"),
    String("member_id"),
]

ShareGroupCurrentMemberAssignmentValue = message(14, "0", flexible="0+")[
    Int32("member_epoch"),
    Int32("previous_member_epoch"),
    Int8("state"),
    Array("assigned_partitions")[
        Uuid("topic_id"),
        Array("partitions", of=Int32),
    ],
]

ShareGroupStatePartitionMetadataKey = message(15, "15")[String("group_id"),]

ShareGroupStatePartitionMetadataValue = message(15, "0", flexible="0+")[
    Array("initializing_topics")[
        Uuid("topic_id"),
        String("topic_name"),
        Array("partitions", of=Int32),
    ],
    Array("initialized_topics")[
        Uuid("topic_id"),
        String("topic_name"),
        Array("partitions", of=Int32),
    ],
    Array("deleting_topics")[
        Uuid("topic_id"),
        String("topic_name"),
    ],
]
