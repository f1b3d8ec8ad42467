"""
AllocateProducerIds (key 67): broker to controller: allocate a block of producer ids.

Source: Kafka, AllocateProducerIdsRequest.json and AllocateProducerIdsResponse.json; KIP-730.
"""

from dissector.protocol.schema import Int16, Int32, Int64, message

AllocateProducerIdsRequest = message(67, "0", flexible="0+")[
    Int32("broker_id", entity="brokerId"),
    Int64("broker_epoch", default=-1),
]

AllocateProducerIdsResponse = message(67, "0", flexible="0+")[
    Int32("throttle_time_ms"),
    Int16("error_code"),
    Int64("producer_id_start", entity="producerId"),
    Int32("producer_id_len"),
]
