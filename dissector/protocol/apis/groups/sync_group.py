"""
SyncGroup (key 14): send (leader) and receive the assignments of a classic consumer group.

`assignment` holds bytes of the embedded consumer protocol.

Source: Kafka, SyncGroupRequest.json and SyncGroupResponse.json; KIP-345 (v3), KIP-559 (v5).
"""

from dissector.protocol.schema import Array, Bytes, Int16, Int32, String, message

SyncGroupRequest = message(14, "0-5", flexible="4+")[
    String("group_id", entity="groupId"),
    Int32("generation_id"),
    String("member_id"),
    String("group_instance_id", "3+", null="3+", default=None),
    String("protocol_type", "5+", null="5+", default=None, ignorable=True),
    String("protocol_name", "5+", null="5+", default=None, ignorable=True),
    Array("assignments")[
        String("member_id"),
        Bytes("assignment"),
    ],
]

SyncGroupResponse = message(14, "0-5", flexible="4+")[
    Int32("throttle_time_ms", "1+", ignorable=True),
    Int16("error_code"),
    String("protocol_type", "5+", null="5+", default=None, ignorable=True),
    String("protocol_name", "5+", null="5+", default=None, ignorable=True),
    Bytes("assignment"),
]
