"""
ShareGroupHeartbeat (key 76): join, stay in or leave a share group.

Source: Kafka, ShareGroupHeartbeatRequest.json and ShareGroupHeartbeatResponse.json; KIP-932.
"""

from dissector.protocol.schema import Array, Int16, Int32, String, Struct, Uuid, message

ShareGroupHeartbeatRequest = message(76, "0-1", flexible="0+")[
    String("group_id", entity="groupId"),
    String("member_id"),
    Int32("member_epoch"),
    String("rack_id", null="0+", default=None),
    Array("subscribed_topic_names", of=String, null="0+", default=None, entity="topicName"),
]

ShareGroupHeartbeatResponse = message(76, "0-1", flexible="0+")[
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
