"""
ConsumerGroupHeartbeat (key 68): join, stay in or leave a consumer group of the new protocol.

Member epoch 0 joins, -1 leaves, -2 leaves temporarily (static member).

Source: Kafka, ConsumerGroupHeartbeatRequest.json and ConsumerGroupHeartbeatResponse.json; KIP-848.
"""

from dissector.protocol.schema import Array, Int16, Int32, String, Struct, Uuid, message

ConsumerGroupHeartbeatRequest = message(68, "0-1", flexible="0+")[
    String("group_id", entity="groupId"),
    String("member_id"),
    Int32("member_epoch"),
    String("instance_id", null="0+", default=None),
    String("rack_id", null="0+", default=None),
    Int32("rebalance_timeout_ms", default=-1),
    Array("subscribed_topic_names", of=String, null="0+", default=None, entity="topicName"),
    String("subscribed_topic_regex", "1+", null="1+", default=None),
    String("server_assignor", null="0+", default=None),
    Array("topic_partitions", null="0+", default=None)[
        Uuid("topic_id"),
        Array("partitions", of=Int32),
    ],
]

ConsumerGroupHeartbeatResponse = message(68, "0-1", flexible="0+")[
    Int32("throttle_time_ms"),
    Int16("error_code"),
    String("error_message", null="0+", default=None),
    String("member_id", null="0+", default=None),
    Int32("member_epoch"),
    Int32("heartbeat_interval_ms"),
    Struct("assignment", null="0+", default=None)[
        Array("topic_partitions")[
            Uuid("topic_id"),
            Array("partitions", of=Int32),
        ],
    ],
]
