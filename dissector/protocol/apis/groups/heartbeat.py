"""
Heartbeat (key 12): keep a member of a classic consumer group alive.

Source: Kafka, HeartbeatRequest.json and HeartbeatResponse.json; KIP-345 (v3).
"""

from dissector.protocol.schema import Int16, Int32, String, message

HeartbeatRequest = message(12, "0-4", flexible="4+")[
    String("group_id", entity="groupId"),
    Int32("generation_id"),
    String("member_id"),
    String("group_instance_id", "3+", null="3+", default=None),
]

HeartbeatResponse = message(12, "0-4", flexible="4+")[
    Int32("throttle_time_ms", "1+", ignorable=True),
    Int16("error_code"),
]
