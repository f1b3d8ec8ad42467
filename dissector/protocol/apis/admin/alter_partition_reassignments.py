"""
AlterPartitionReassignments (key 45): start or cancel reassignments of partitions to other brokers.

Source: Kafka, AlterPartitionReassignmentsRequest.json and AlterPartitionReassignmentsResponse.json;
KIP-455.
"""

from dissector.protocol.schema import Array, Bool, Int16, Int32, String, message

AlterPartitionReassignmentsRequest = message(45, "0-1", flexible="0+")[
    Int32("timeout_ms", default=60000),
    Bool("allow_replication_factor_change", "1+", default=True),
    Array("topics")[
        String("name", entity="topicName"),
        Array("partitions")[
            Int32("partition_index"),
            Array("replicas", of=Int32, null="0+", default=None, entity="brokerId"),
        ],
    ],
]

AlterPartitionReassignmentsResponse = message(45, "0-1", flexible="0+")[
    Int32("throttle_time_ms"),
    Bool("allow_replication_factor_change", "1+", default=True, ignorable=True),
    Int16("error_code"),
    String("error_message", null="0+"),
    Array("responses")[
        String("name", entity="topicName"),
        Array("partitions")[
            Int32("partition_index"),
            Int16("error_code"),
            String("error_message", null="0+"),
        ],
    ],
]
