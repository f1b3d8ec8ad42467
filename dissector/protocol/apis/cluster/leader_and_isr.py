"""
LeaderAndIsr (key 4): controller to broker: become leader or follower of partitions.

Removed with ZooKeeper in Kafka 4.0.

Source: Kafka, LeaderAndIsrRequest.json and LeaderAndIsrResponse.json; KIP-380, KIP-455, KIP-516.
"""

from dissector.protocol.schema import Array, Bool, Int8, Int16, Int32, Int64, String, Uuid, message

LeaderAndIsrRequest = message(4, "0-7", flexible="4+")[
    Int32("controller_id", entity="brokerId"),
    Bool("is_k_raft_controller", "7+", default=False, kafka="isKRaftController"),
    Int32("controller_epoch"),
    Int64("broker_epoch", "2+", default=-1, ignorable=True),
    Int8("type", "5+"),
    Array("topic_states", "2+")[
        String("topic_name", entity="topicName"),
        Uuid("topic_id", "5+", ignorable=True),
        Array("partition_states")[
            Int32("partition_index"),
            Int32("controller_epoch"),
            Int32("leader", entity="brokerId"),
            Int32("leader_epoch"),
            Array("isr", of=Int32, entity="brokerId"),
            Int32("partition_epoch"),
            Array("replicas", of=Int32, entity="brokerId"),
            Array("adding_replicas", "3+", of=Int32, ignorable=True, entity="brokerId"),
            Array("removing_replicas", "3+", of=Int32, ignorable=True, entity="brokerId"),
            Bool("is_new", default=False, ignorable=True),
            Int8("leader_recovery_state", "6+", default=0),
        ],
    ],
    Array("ungrouped_partition_states", "0-1")[
        String("topic_name", ignorable=True, entity="topicName"),
        Int32("partition_index"),
        Int32("controller_epoch"),
        Int32("leader", entity="brokerId"),
        Int32("leader_epoch"),
        Array("isr", of=Int32, entity="brokerId"),
        Int32("partition_epoch"),
        Array("replicas", of=Int32, entity="brokerId"),
        Bool("is_new", "1", default=False, ignorable=True),
    ],
    Array("live_leaders")[
        Int32("broker_id", entity="brokerId"),
        String("host_name"),
        Int32("port"),
    ],
]

LeaderAndIsrResponse = message(4, "0-7", flexible="4+")[
    Int16("error_code"),
    Array("topics", "5+")[
        Uuid("topic_id", key=True),
        Array("partition_errors")[
            Int32("partition_index"),
            Int16("error_code"),
        ],
    ],
    Array("partition_errors", "0-4")[
        String("topic_name", ignorable=True, entity="topicName"),
        Int32("partition_index"),
        Int16("error_code"),
    ],
]
