"""
Group coordinator: keys and values of `__consumer_offsets`, classic and consumer groups.

A key begins with an int16 that is both its version and its type, a value with its int16 version.
`subscription`, `assignment` and `metadata` of members hold bytes of the embedded consumer protocol.
The records of share and streams groups are in `share_group_coordinator` and
`streams_group_coordinator`.

Where Kafka's definition has the default null without quotes, its generator ignores it: the default
is an empty list or struct, and null is written.

Source: Kafka, group-coordinator/src/main/resources/common/message; KIP-211, KIP-345, KIP-848,
KIP-915 (from here on values change by tagged fields only), KIP-1101 (`metadata_hash`), KIP-1263.
"""

from dissector.protocol.schema import (
    Array,
    Bytes,
    Int8,
    Int32,
    Int64,
    String,
    Struct,
    Uuid,
    message,
)

OffsetCommitKey = message(1, "0-1")[
    String("group", kafka="group"),
    String("topic", kafka="topic"),
    Int32("partition", kafka="partition"),
]

OffsetCommitValue = message(1, "0-4", flexible="4+")[
    Int64("offset", kafka="offset"),
    Int32("leader_epoch", "3+", default=-1, ignorable=True, kafka="leaderEpoch"),
    String("metadata", kafka="metadata"),
    Int64("commit_timestamp", kafka="commitTimestamp"),
    Int64("expire_timestamp", "1", default=-1, ignorable=True, kafka="expireTimestamp"),
    Uuid("topic_id", "4+", tag=0, ignorable=True, kafka="topicId"),
]

GroupMetadataKey = message(2, "2")[String("group", kafka="group"),]

GroupMetadataValue = message(2, "0-4", flexible="4+")[
    String("protocol_type", kafka="protocolType"),
    Int32("generation", kafka="generation"),
    String("protocol", null="0+", kafka="protocol"),
    String("leader", null="0+", kafka="leader"),
    Int64(
        "current_state_timestamp", "2+", default=-1, ignorable=True, kafka="currentStateTimestamp"
    ),
    Array("members", kafka="members")[
        String("member_id", kafka="memberId"),
        String(
            "group_instance_id",
            "3+",
            null="3+",
            default=None,
            ignorable=True,
            kafka="groupInstanceId",
        ),
        String("client_id", kafka="clientId"),
        String("client_host", kafka="clientHost"),
        Int32("rebalance_timeout", "1+", default=-1, ignorable=True, kafka="rebalanceTimeout"),
        Int32("session_timeout", kafka="sessionTimeout"),
        Bytes("subscription", kafka="subscription"),
        Bytes("assignment", kafka="assignment"),
    ],
]

ConsumerGroupMetadataKey = message(3, "3")[String("group_id"),]

ConsumerGroupMetadataValue = message(3, "0", flexible="0+")[
    Int32("epoch"),
    Int64("metadata_hash", tag=0, default=0),
]

ConsumerGroupPartitionMetadataKey = message(4, "4")[String("group_id"),]

ConsumerGroupPartitionMetadataValue = message(4, "0", flexible="0+")[
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

ConsumerGroupMemberMetadataKey = message(5, "5")[
    String("group_id"),
    String("member_id"),
]

ConsumerGroupMemberMetadataValue = message(5, "0", flexible="0+")[
    String("instance_id", null="0+"),
    String("rack_id", null="0+"),
    String("client_id"),
    String("client_host"),
    Array("subscribed_topic_names", of=String),
    String("subscribed_topic_regex", null="0+"),
    Int32("rebalance_timeout_ms", default=-1),
    String("server_assignor", null="0+"),
    Struct("classic_member_metadata", null="0+", tag=0)[
        Int32("session_timeout_ms"),
        Array("supported_protocols")[
            String("name"),
            Bytes("metadata"),
        ],
    ],
]

ConsumerGroupTargetAssignmentMetadataKey = message(6, "6")[String("group_id"),]

ConsumerGroupTargetAssignmentMetadataValue = message(6, "0", flexible="0+")[
    Int32("assignment_epoch"),
    Int64("assignment_timestamp", tag=0, default=0, ignorable=True),
]

ConsumerGroupTargetAssignmentMemberKey = message(7, "7")[
    String("group_id"),
    String("member_id"),
]

ConsumerGroupTargetAssignmentMemberValue = message(7, "0", flexible="0+")[
    Array("topic_partitions")[
        Uuid("topic_id"),
        Array("partitions", of=Int32),
    ],
]

ConsumerGroupCurrentMemberAssignmentKey = message(8, "8")[
    String("group_id"),
    String("member_id"),
]

ConsumerGroupCurrentMemberAssignmentValue = message(8, "0", flexible="0+")[
    Int32("member_epoch"),
    Int32("previous_member_epoch"),
    Int8("state"),
    Array("assigned_partitions")[
        Uuid("topic_id"),
        Array("partitions", of=Int32),
        Array("assignment_epochs", of=Int32, null="0+", tag=0),
    ],
    Array("partitions_pending_revocation")[
        Uuid("topic_id"),
        Array("partitions", of=Int32),
        Array("assignment_epochs", of=Int32, null="0+", tag=0),
    ],
]

ConsumerGroupRegularExpressionKey = message(16, "16")[
    String("group_id"),
    String("regular_expression"),
]

ConsumerGroupRegularExpressionValue = message(16, "0", flexible="0+")[
    Array("topics", of=String),
    Int64("version"),
    Int64("timestamp"),
]
