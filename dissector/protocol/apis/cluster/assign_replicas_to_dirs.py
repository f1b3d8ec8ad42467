"""
AssignReplicasToDirs (key 73): broker to controller: report the log directories of replicas.

Source: Kafka, AssignReplicasToDirsRequest.json and AssignReplicasToDirsResponse.json; KIP-858.
"""

from dissector.protocol.schema import Array, Int16, Int32, Int64, Uuid, message

AssignReplicasToDirsRequest = message(73, "0", flexible="0+")[
    Int32("broker_id", entity="brokerId"),
    Int64("broker_epoch", default=-1),
    Array("directories")[
        Uuid("id"),
        Array("topics")[
            Uuid("topic_id"),
            Array("partitions")[Int32("partition_index"),],
        ],
    ],
]

AssignReplicasToDirsResponse = message(73, "0", flexible="0+")[
    Int32("throttle_time_ms"),
    Int16("error_code"),
    Array("directories")[
        Uuid("id"),
        Array("topics")[
            Uuid("topic_id"),
            Array("partitions")[
                Int32("partition_index"),
                Int16("error_code"),
            ],
        ],
    ],
]
