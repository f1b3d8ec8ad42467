"""
GetReplicaLogInfo (key 93): ask brokers how far their replicas' logs go.

In Kafka's trunk, not in a release yet.

Source: Kafka, GetReplicaLogInfoRequest.json and GetReplicaLogInfoResponse.json; KIP-966.
"""

from dissector.protocol.schema import Array, Bool, Int16, Int32, Int64, Uuid, message

GetReplicaLogInfoRequest = message(93, "0", flexible="0+")[
    Array("topic_partitions", null="0+")[
        Uuid("topic_id", ignorable=True),
        Array("partitions", of=Int32),
    ],
]

GetReplicaLogInfoResponse = message(93, "0", flexible="0+")[
    Int32("throttle_time_ms"),
    Int64("broker_epoch"),
    Bool("truncated"),
    Array("topic_partition_log_info_list")[
        Uuid("topic_id"),
        Array("partition_log_info")[
            Int32("partition"),
            Int32("last_written_leader_epoch"),
            Int32("current_leader_epoch"),
            Int64("log_end_offset"),
            Int16("error_code"),
        ],
    ],
]
