"""
AlterPartition (key 56): leader to controller: change the in-sync replicas.

Source: Kafka, AlterPartitionRequest.json and AlterPartitionResponse.json; KIP-497, KIP-704 (v1),
KIP-903 (v3).
"""

from dissector.protocol.schema import Array, Int8, Int16, Int32, Int64, String, Uuid, message

AlterPartitionRequest = message(56, "0-3", flexible="0+")[
    Int32("broker_id", entity="brokerId"),
    Int64("broker_epoch", default=-1),
    Array("topics")[
        Uuid("topic_id", "2+", ignorable=True),
        String("topic_name", "0-1", ignorable=True, entity="topicName"),
        Array("partitions")[
            Int32("partition_index"),
            Int32("leader_epoch"),
            Array("new_isr_with_epochs", "3+")[
                Int32("broker_id", entity="brokerId"),
                Int64("broker_epoch", default=-1),
            ],
            Array("new_isr", "0-2", of=Int32, entity="brokerId"),
            Int8("leader_recovery_state", "1+", default=0),
            Int32("partition_epoch"),
        ],
    ],
]

AlterPartitionResponse = message(56, "0-3", flexible="0+")[
    Int32("throttle_time_ms"),
    Int16("error_code"),
    Array("topics")[
        Uuid("topic_id", "2+", ignorable=True),
        String("topic_name", "0-1", ignorable=True, entity="topicName"),
        Array("partitions")[
            Int32("partition_index"),
            Int16("error_code"),
            Int32("leader_id", entity="brokerId"),
            Int32("leader_epoch"),
            Array("isr", of=Int32, entity="brokerId"),
            Int8("leader_recovery_state", "1+", default=0, ignorable=True),
            Int32("partition_epoch"),
        ],
    ],
]
