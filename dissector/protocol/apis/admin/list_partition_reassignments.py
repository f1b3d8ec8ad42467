"""
ListPartitionReassignments (key 46): list ongoing reassignments of partitions.

Source: Kafka, ListPartitionReassignmentsRequest.json and ListPartitionReassignmentsResponse.json;
KIP-455.
"""

from dissector.protocol.schema import Array, Int16, Int32, String, message

ListPartitionReassignmentsRequest = message(46, "0", flexible="0+")[
    Int32("timeout_ms", default=60000),
    Array("topics", null="0+", default=None)[
        String("name", entity="topicName"),
        Array("partition_indexes", of=Int32),
    ],
]

ListPartitionReassignmentsResponse = message(46, "0", flexible="0+")[
    Int32("throttle_time_ms"),
    Int16("error_code"),
    String("error_message", null="0+"),
    Array("topics")[
        String("name", entity="topicName"),
        Array("partitions")[
            Int32("partition_index"),
            Array("replicas", of=Int32, entity="brokerId"),
            Array("adding_replicas", of=Int32, entity="brokerId"),
            Array("removing_replicas", of=Int32, entity="brokerId"),
        ],
    ],
]
