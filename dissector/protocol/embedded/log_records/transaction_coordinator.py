"""
Transaction coordinator: keys and values of `__transaction_state`.

A key begins with an int16 that is both its version and its type, a value with its int16 version.

Source: Kafka, TransactionLogKey.json and TransactionLogValue.json; KIP-98, KIP-890 (v1).
"""

from dissector.protocol.schema import Array, Int8, Int16, Int32, Int64, String, message

TransactionLogKey = message(0, "0")[String("transactional_id"),]

TransactionLogValue = message(0, "0-1", flexible="1+")[
    Int64("producer_id"),
    Int64("previous_producer_id", "1+", tag=0, default=-1),
    Int64("next_producer_id", "1+", tag=1, default=-1),
    Int16("producer_epoch"),
    Int16("next_producer_epoch", "1+", tag=3, default=-1),
    Int32("transaction_timeout_ms"),
    Int8("transaction_status"),
    Array("transaction_partitions", null="0+")[
        String("topic"),
        Array("partition_ids", of=Int32),
    ],
    Int64("transaction_last_update_timestamp_ms"),
    Int64("transaction_start_timestamp_ms"),
    Int16("client_transaction_version", "1+", tag=2, default=0),
]
