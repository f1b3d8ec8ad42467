"""
InitProducerId (key 22): get a producer id and epoch.

Source: Kafka, InitProducerIdRequest.json and InitProducerIdResponse.json; KIP-98, KIP-360 (v3),
KIP-588 (v4), KIP-890 (v5), KIP-939 (v6).
"""

from dissector.protocol.schema import Bool, Int16, Int32, Int64, String, message

InitProducerIdRequest = message(22, "0-6", flexible="2+")[
    String("transactional_id", null="0+", entity="transactionalId"),
    Int32("transaction_timeout_ms"),
    Int64("producer_id", "3+", default=-1, entity="producerId"),
    Int16("producer_epoch", "3+", default=-1),
    Bool("enable2_pc", "6+", default=False),
    Bool("keep_prepared_txn", "6+", default=False),
]

InitProducerIdResponse = message(22, "0-6", flexible="2+")[
    Int32("throttle_time_ms", ignorable=True),
    Int16("error_code"),
    Int64("producer_id", default=-1, entity="producerId"),
    Int16("producer_epoch"),
    Int64("ongoing_txn_producer_id", "6+", default=-1, entity="producerId"),
    Int16("ongoing_txn_producer_epoch", "6+", default=-1),
]
