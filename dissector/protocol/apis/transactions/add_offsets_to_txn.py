"""
AddOffsetsToTxn (key 25): add a group's offsets to a transaction.

Source: Kafka, AddOffsetsToTxnRequest.json and AddOffsetsToTxnResponse.json; KIP-98.
"""

from dissector.protocol.schema import Int16, Int32, Int64, String, message

AddOffsetsToTxnRequest = message(25, "0-4", flexible="3+")[
    String("transactional_id", entity="transactionalId"),
    Int64("producer_id", entity="producerId"),
    Int16("producer_epoch"),
    String("group_id", entity="groupId"),
]

AddOffsetsToTxnResponse = message(25, "0-4", flexible="3+")[
    Int32("throttle_time_ms"),
    Int16("error_code"),
]
