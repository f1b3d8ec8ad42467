"""
DescribeTransactions (key 65): describe transactions.

Source: Kafka, DescribeTransactionsRequest.json and DescribeTransactionsResponse.json; KIP-664.
"""

from dissector.protocol.schema import Array, Int16, Int32, Int64, String, message

DescribeTransactionsRequest = message(65, "0", flexible="0+")[
    Array("transactional_ids", of=String, entity="transactionalId"),
]

DescribeTransactionsResponse = message(65, "0", flexible="0+")[
    Int32("throttle_time_ms"),
    Array("transaction_states")[
        Int16("error_code"),
        String("transactional_id", entity="transactionalId"),
        String("transaction_state"),
        Int32("transaction_timeout_ms"),
        Int64("transaction_start_time_ms"),
        Int64("producer_id", entity="producerId"),
        Int16("producer_epoch"),
        Array("topics")[
            String("topic", key=True, entity="topicName"),
            Array("partitions", of=Int32),
        ],
    ],
]
