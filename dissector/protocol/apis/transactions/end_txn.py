"""
EndTxn (key 26): commit or abort a transaction.

The v5+ response has the producer id and epoch to continue with.

Source: Kafka, EndTxnRequest.json and EndTxnResponse.json; KIP-98, KIP-890 (v5).
"""

from dissector.protocol.schema import Bool, Int16, Int32, Int64, String, message

EndTxnRequest = message(26, "0-5", flexible="3+")[
    String("transactional_id", entity="transactionalId"),
    Int64("producer_id", entity="producerId"),
    Int16("producer_epoch"),
    Bool("committed"),
]

EndTxnResponse = message(26, "0-5", flexible="3+")[
    Int32("throttle_time_ms"),
    Int16("error_code"),
    Int64("producer_id", "5+", default=-1, ignorable=True, entity="producerId"),
    Int16("producer_epoch", "5+", default=-1, ignorable=True),
]
