"""
OffsetForLeaderEpoch (key 23): find where a leader epoch ends.

Source: Kafka, OffsetForLeaderEpochRequest.json and OffsetForLeaderEpochResponse.json; KIP-101,
KIP-279 (v1), KIP-320 (v2).
"""

from dissector.protocol.schema import Array, Int16, Int32, Int64, String, message

OffsetForLeaderEpochRequest = message(23, "0-4", flexible="4+")[
    Int32("replica_id", "3+", default=-2, ignorable=True, entity="brokerId"),
    Array("topics")[
        String("topic", key=True, entity="topicName"),
        Array("partitions")[
            Int32("partition"),
            Int32("current_leader_epoch", "2+", default=-1, ignorable=True),
            Int32("leader_epoch"),
        ],
    ],
]

OffsetForLeaderEpochResponse = message(23, "0-4", flexible="4+")[
    Int32("throttle_time_ms", "2+", ignorable=True),
    Array("topics")[
        String("topic", key=True, entity="topicName"),
        Array("partitions")[
            Int16("error_code"),
            Int32("partition"),
            Int32("leader_epoch", "1+", default=-1, ignorable=True),
            Int64("end_offset", default=-1),
        ],
    ],
]
