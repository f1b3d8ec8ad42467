"""
Produce (key 0): append record batches to partitions.

With acks = 0 the broker sends no response.
v0-v1 contain message sets of magic 0, v2 of magic 1, v3+ record batches of magic 2.
v13+ identifies topics by id only.

Source: Kafka, ProduceRequest.json and ProduceResponse.json; KIP-98, KIP-467 (v8), KIP-951 (v10),
KIP-890 (v12), KIP-516 (v13).
"""

from dissector.protocol.schema import (
    Array,
    Int16,
    Int32,
    Int64,
    Records,
    String,
    Struct,
    Uuid,
    message,
)

ProduceRequest = message(0, "0-13", flexible="9+")[
    String("transactional_id", "3+", null="3+", default=None, entity="transactionalId"),
    Int16("acks"),
    Int32("timeout_ms"),
    Array("topic_data")[
        Uuid("topic_id", "13+", ignorable=True, key=True),
        String("name", "0-12", ignorable=True, key=True, entity="topicName"),
        Array("partition_data")[
            Int32("index"),
            Records("records", null="0+"),
        ],
    ],
]

ProduceResponse = message(0, "0-13", flexible="9+")[
    Array("responses")[
        Uuid("topic_id", "13+", ignorable=True, key=True),
        String("name", "0-12", ignorable=True, key=True, entity="topicName"),
        Array("partition_responses")[
            Int32("index"),
            Int16("error_code"),
            Int64("base_offset"),
            Int64("log_append_time_ms", "2+", default=-1, ignorable=True),
            Int64("log_start_offset", "5+", default=-1, ignorable=True),
            Array("record_errors", "8+", ignorable=True)[
                Int32("batch_index"),
                String("batch_index_error_message", null="8+", default=None),
            ],
            String("error_message", "8+", null="8+", default=None, ignorable=True),
            Struct("current_leader", "10+", tag=0)[
                Int32("leader_id", default=-1, entity="brokerId"),
                Int32("leader_epoch", default=-1),
            ],
        ],
    ],
    Int32("throttle_time_ms", "1+", default=0, ignorable=True),
    Array("node_endpoints", "10+", tag=0)[
        Int32("node_id", key=True, entity="brokerId"),
        String("host"),
        Int32("port"),
        String("rack", null="10+", default=None),
    ],
]
