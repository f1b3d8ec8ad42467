"""
CreatePartitions (key 37): add partitions to topics.

Source: Kafka, CreatePartitionsRequest.json and CreatePartitionsResponse.json; KIP-195, KIP-599
(v3).
"""

from dissector.protocol.schema import Array, Bool, Int16, Int32, String, message

CreatePartitionsRequest = message(37, "0-3", flexible="2+")[
    Array("topics")[
        String("name", key=True, entity="topicName"),
        Int32("count"),
        Array("assignments", null="0+")[Array("broker_ids", of=Int32, entity="brokerId"),],
    ],
    Int32("timeout_ms"),
    Bool("validate_only"),
]

CreatePartitionsResponse = message(37, "0-3", flexible="2+")[
    Int32("throttle_time_ms"),
    Array("results")[
        String("name", entity="topicName"),
        Int16("error_code"),
        String("error_message", null="0+", default=None),
    ],
]
