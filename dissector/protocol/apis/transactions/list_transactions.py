"""
ListTransactions (key 66): list transactions.

Source: Kafka, ListTransactionsRequest.json and ListTransactionsResponse.json; KIP-664, KIP-994
(v1).
"""

from dissector.protocol.schema import Array, Int16, Int32, Int64, String, message

ListTransactionsRequest = message(66, "0-2", flexible="0+")[
    Array("state_filters", of=String),
    Array("producer_id_filters", of=Int64, entity="producerId"),
    Int64("duration_filter", "1+", default=-1),
    String("transactional_id_pattern", "2+", null="2+", default=None),
]

ListTransactionsResponse = message(66, "0-2", flexible="0+")[
    Int32("throttle_time_ms"),
    Int16("error_code"),
    Array("unknown_state_filters", of=String),
    Array("transaction_states")[
        String("transactional_id", entity="transactionalId"),
        Int64("producer_id", entity="producerId"),
        String("transaction_state"),
    ],
]
