"""
DeleteTopics (key 20): delete topics.

v6+ identifies them by name or id.

Source: Kafka, DeleteTopicsRequest.json and DeleteTopicsResponse.json; KIP-4, KIP-516 (v6).
"""

from dissector.protocol.schema import Array, Int16, Int32, String, Uuid, message

DeleteTopicsRequest = message(20, "0-6", flexible="4+")[
    Array("topics", "6+")[
        String("name", null="6+", default=None, entity="topicName"),
        Uuid("topic_id"),
    ],
    Array("topic_names", "0-5", of=String, ignorable=True, entity="topicName"),
    Int32("timeout_ms"),
]

DeleteTopicsResponse = message(20, "0-6", flexible="4+")[
    Int32("throttle_time_ms", "1+", ignorable=True),
    Array("responses")[
        String("name", null="6+", key=True, entity="topicName"),
        Uuid("topic_id", "6+", ignorable=True),
        Int16("error_code"),
        String("error_message", "5+", null="5+", default=None, ignorable=True),
    ],
]
