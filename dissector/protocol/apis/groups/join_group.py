"""
JoinGroup (key 11): join a classic consumer group.

v4+ rejects an empty member id; the error response has the id to join with.
`protocols.metadata` holds bytes of the embedded consumer protocol.

Source: Kafka, JoinGroupRequest.json and JoinGroupResponse.json; KIP-394 (v4), KIP-345 (v5), KIP-559
(v7), KIP-800 (v8), KIP-814 (v9).
"""

from dissector.protocol.schema import Array, Bool, Bytes, Int16, Int32, String, message

JoinGroupRequest = message(11, "0-9", flexible="6+")[
    String("group_id", entity="groupId"),
    Int32("session_timeout_ms"),
    Int32("rebalance_timeout_ms", "1+", default=-1, ignorable=True),
    String("member_id"),
    String("group_instance_id", "5+", null="5+", default=None),
    String("protocol_type"),
    Array("protocols")[
        String("name", key=True),
        Bytes("metadata"),
    ],
    String("reason", "8+", null="8+", default=None, ignorable=True),
]

JoinGroupResponse = message(11, "0-9", flexible="6+")[
    Int32("throttle_time_ms", "2+", ignorable=True),
    Int16("error_code"),
    Int32("generation_id", default=-1),
    String("protocol_type", "7+", null="7+", default=None, ignorable=True),
    String("protocol_name", null="7+"),
    String("leader"),
    Bool("skip_assignment", "9+", default=False),
    String("member_id"),
    Array("members")[
        String("member_id"),
        String("group_instance_id", "5+", null="5+", default=None, ignorable=True),
        Bytes("metadata"),
    ],
]
