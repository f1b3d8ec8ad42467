"""
StopReplica (key 5): controller to broker: stop replicating partitions, optionally delete them.

Removed with ZooKeeper in Kafka 4.0.

Source: Kafka, StopReplicaRequest.json and StopReplicaResponse.json; KIP-380.
"""

from dissector.protocol.schema import Array, Bool, Int16, Int32, Int64, String, message

StopReplicaRequest = message(5, "0-4", flexible="2+")[
    Int32("controller_id", entity="brokerId"),
    Bool("is_k_raft_controller", "4+", default=False, kafka="isKRaftController"),
    Int32("controller_epoch"),
    Int64("broker_epoch", "1+", default=-1, ignorable=True),
    Array("topic_states", "3+")[
        String("topic_name", entity="topicName"),
        Array("partition_states")[
            Int32("partition_index"),
            Int32("leader_epoch", default=-1),
            Bool("delete_partition"),
        ],
    ],
    Bool("delete_partitions", "0-2"),
    Array("topics", "1-2")[
        String("name", entity="topicName"),
        Array("partition_indexes", of=Int32),
    ],
    Array("ungrouped_partitions", "0")[
        String("topic_name", entity="topicName"),
        Int32("partition_index"),
    ],
]

StopReplicaResponse = message(5, "0-4", flexible="2+")[
    Int16("error_code"),
    Array("partition_errors")[
        String("topic_name", entity="topicName"),
        Int32("partition_index"),
        Int16("error_code"),
    ],
]
