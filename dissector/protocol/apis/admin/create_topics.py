"""
CreateTopics (key 19): create topics.

Source: Kafka, CreateTopicsRequest.json and CreateTopicsResponse.json; KIP-4, KIP-195 (v1), KIP-464
(v4), KIP-525 (v5), KIP-599 (v6), KIP-516 (v7).
"""

from dissector.protocol.schema import Array, Bool, Int8, Int16, Int32, String, Uuid, message

CreateTopicsRequest = message(19, "0-7", flexible="5+")[
    Array("topics")[
        String("name", key=True, entity="topicName"),
        Int32("num_partitions"),
        Int16("replication_factor"),
        Array("assignments")[
            Int32("partition_index", key=True),
            Array("broker_ids", of=Int32, entity="brokerId"),
        ],
        Array("configs")[
            String("name", key=True),
            String("value", null="0+"),
        ],
    ],
    Int32("timeout_ms", default=60000, kafka="timeoutMs"),
    Bool("validate_only", "1+", default=False, kafka="validateOnly"),
]

CreateTopicsResponse = message(19, "0-7", flexible="5+")[
    Int32("throttle_time_ms", "2+", ignorable=True),
    Array("topics")[
        String("name", key=True, entity="topicName"),
        Uuid("topic_id", "7+", ignorable=True),
        Int16("error_code"),
        String("error_message", "1+", null="1+", ignorable=True),
        Int16("topic_config_error_code", "5+", tag=0, ignorable=True),
        Int32("num_partitions", "5+", default=-1, ignorable=True),
        Int16("replication_factor", "5+", default=-1, ignorable=True),
        Array("configs", "5+", null="5+", ignorable=True)[
            String("name"),
            String("value", null="5+"),
            Bool("read_only"),
            Int8("config_source", default=-1, ignorable=True),
            Bool("is_sensitive"),
        ],
    ],
]
