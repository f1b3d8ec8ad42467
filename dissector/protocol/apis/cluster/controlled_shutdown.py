"""
ControlledShutdown (key 7): broker to controller: move leaderships away from a broker that stops.

The v0 request has a header without a client id.
Removed with ZooKeeper in Kafka 4.0.

Source: Kafka, ControlledShutdownRequest.json and ControlledShutdownResponse.json; KIP-380.
"""

from dissector.protocol.schema import Array, Int16, Int32, Int64, String, message

ControlledShutdownRequest = message(7, "0-3", flexible="3+")[
    Int32("broker_id", entity="brokerId"),
    Int64("broker_epoch", "2+", default=-1, ignorable=True),
]

ControlledShutdownResponse = message(7, "0-3", flexible="3+")[
    Int16("error_code"),
    Array("remaining_partitions")[
        String("topic_name", key=True, entity="topicName"),
        Int32("partition_index", key=True),
    ],
]
