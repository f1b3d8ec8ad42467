"""
Consumer protocol: subscription and assignment of a member of a classic consumer group.

Follows an int16 version in `metadata` of JoinGroup and `assignment` of SyncGroup; both occur in
DescribeGroups and in GroupMetadata records. Forward compatible: a reader of an older version
decodes the fields that it knows and ignores the rest. `user_data` belongs to the assignor.

Source: Kafka, ConsumerProtocolSubscription.json and ConsumerProtocolAssignment.json; KIP-429 (v1),
KIP-792 (v2), KIP-881 (v3).
"""

from dissector.protocol.schema import Array, Bytes, Int32, String, message

ConsumerProtocolSubscription = message(None, "0-3")[
    Array("topics", of=String),
    Bytes("user_data", null="0+", default=None),
    Array("owned_partitions", "1+", ignorable=True)[
        String("topic", key=True, entity="topicName"),
        Array("partitions", of=Int32),
    ],
    Int32("generation_id", "2+", default=-1, ignorable=True),
    String("rack_id", "3+", null="3+", default=None, ignorable=True),
]

ConsumerProtocolAssignment = message(None, "0-3")[
    Array("assigned_partitions")[
        String("topic", key=True, entity="topicName"),
        Array("partitions", of=Int32),
    ],
    Bytes("user_data", null="0+", default=None),
]
