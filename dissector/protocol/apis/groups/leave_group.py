"""
LeaveGroup (key 13): leave a classic consumer group.

v3+ lists several members.

Source: Kafka, LeaveGroupRequest.json and LeaveGroupResponse.json; KIP-345 (v3), KIP-800 (v5).
"""

from dissector.protocol.schema import Array, Int16, Int32, String, message

LeaveGroupRequest = message(13, "0-5", flexible="4+")[
    String("group_id", entity="groupId"),
    Array("members", "3+")[
        String("member_id"),
        String("group_instance_id", null="3+", default=None),
        String("reason", "5+", null="5+", default=None, ignorable=True),
    ],
    String("member_id", "0-2"),
]

LeaveGroupResponse = message(13, "0-5", flexible="4+")[
    Int32("throttle_time_ms", "1+", ignorable=True),
    Int16("error_code"),
    Array("members", "3+")[
        String("member_id"),
        String("group_instance_id", null="3+"),
        Int16("error_code"),
    ],
]
