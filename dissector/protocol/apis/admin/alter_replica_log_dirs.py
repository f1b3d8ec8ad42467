"""
AlterReplicaLogDirs (key 34): move replicas between the log directories of a broker.

Source: Kafka, AlterReplicaLogDirsRequest.json and AlterReplicaLogDirsResponse.json; KIP-113.
"""

from dissector.protocol.schema import Array, Int16, Int32, String, message

AlterReplicaLogDirsRequest = message(34, "0-2", flexible="2+")[
    Array("dirs")[
        String("path", key=True),
        Array("topics")[
            String("name", key=True, entity="topicName"),
            Array("partitions", of=Int32),
        ],
    ],
]

AlterReplicaLogDirsResponse = message(34, "0-2", flexible="2+")[
    Int32("throttle_time_ms"),
    Array("results")[
        String("topic_name", entity="topicName"),
        Array("partitions")[
            Int32("partition_index"),
            Int16("error_code"),
        ],
    ],
]
