"""
AddPartitionsToTxn (key 24): add partitions to a transaction.

v4+ is sent by brokers, for several transactions.

Source: Kafka, AddPartitionsToTxnRequest.json and AddPartitionsToTxnResponse.json; KIP-98, KIP-890
(v4).
"""

from dissector.protocol.schema import Array, Bool, Int16, Int32, Int64, String, message

AddPartitionsToTxnRequest = message(24, "0-5", flexible="3+")[
    Array("transactions", "4+")[
        String("transactional_id", key=True, entity="transactionalId"),
        Int64("producer_id", entity="producerId"),
        Int16("producer_epoch"),
        Bool("verify_only", default=False),
        Array("topics")[
            String("name", key=True, entity="topicName"),
            Array("partitions", of=Int32),
        ],
    ],
    String("v3_and_below_transactional_id", "0-3", entity="transactionalId"),
    Int64("v3_and_below_producer_id", "0-3", entity="producerId"),
    Int16("v3_and_below_producer_epoch", "0-3"),
    Array("v3_and_below_topics", "0-3")[
        String("name", key=True, entity="topicName"),
        Array("partitions", of=Int32),
    ],
]

AddPartitionsToTxnResponse = message(24, "0-5", flexible="3+")[
    Int32("throttle_time_ms"),
    Int16("error_code", "4+", ignorable=True),
    Array("results_by_transaction", "4+")[
        String("transactional_id", key=True, entity="transactionalId"),
        Array("topic_results")[
            String("name", key=True, entity="topicName"),
            Array("results_by_partition")[
                Int32("partition_index", key=True),
                Int16("partition_error_code"),
            ],
        ],
    ],
    Array("results_by_topic_v3_and_below", "0-3")[
        String("name", key=True, entity="topicName"),
        Array("results_by_partition")[
            Int32("partition_index", key=True),
            Int16("partition_error_code"),
        ],
    ],
]
