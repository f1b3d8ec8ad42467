"""
FindCoordinator (key 10): find the coordinator of a group, transaction or share partition.

v4+ requests the coordinators of several keys at once.

Source: Kafka, FindCoordinatorRequest.json and FindCoordinatorResponse.json; KIP-98 (v1), KIP-699
(v4), KIP-890 (v5), KIP-932 (v6).
"""

from dissector.protocol.schema import Array, Int8, Int16, Int32, String, message

FindCoordinatorRequest = message(10, "0-6", flexible="3+")[
    String("key", "0-3"),
    Int8("key_type", "1+", default=0),
    Array("coordinator_keys", "4+", of=String),
]

FindCoordinatorResponse = message(10, "0-6", flexible="3+")[
    Int32("throttle_time_ms", "1+", ignorable=True),
    Array("coordinators", "4+")[
        String("key"),
        Int32("node_id", entity="brokerId"),
        String("host"),
        Int32("port"),
        Int16("error_code"),
        String("error_message", null="4+", ignorable=True),
    ],
    Int16("error_code", "0-3"),
    String("error_message", "1-3", null="1-3", ignorable=True),
    Int32("node_id", "0-3", entity="brokerId"),
    String("host", "0-3"),
    Int32("port", "0-3"),
]
