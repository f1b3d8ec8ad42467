"""
ListOffsets (key 2): find offsets by timestamp, or the earliest and latest.

Negative timestamps request special offsets: -1 the latest, -2 the earliest, -3 the one of the
largest timestamp; newer versions have more. The v0 response has a list of offsets, v1+ a single
one.

Source: Kafka, ListOffsetsRequest.json and ListOffsetsResponse.json; KIP-79 (v1), KIP-98 (v2),
KIP-734 (v7), KIP-405 (v8).
"""

from dissector.protocol.schema import Array, Int8, Int16, Int32, Int64, String, message

ListOffsetsRequest = message(2, "0-11", flexible="6+")[
    Int32("replica_id", entity="brokerId"),
    Int8("isolation_level", "2+"),
    Array("topics")[
        String("name", entity="topicName"),
        Array("partitions")[
            Int32("partition_index"),
            Int32("current_leader_epoch", "4+", default=-1, ignorable=True),
            Int64("timestamp"),
            Int32("max_num_offsets", "0", default=1),
        ],
    ],
    Int32("timeout_ms", "10+", ignorable=True),
]

ListOffsetsResponse = message(2, "0-11", flexible="6+")[
    Int32("throttle_time_ms", "2+", ignorable=True),
    Array("topics")[
        String("name", entity="topicName"),
        Array("partitions")[
            Int32("partition_index"),
            Int16("error_code"),
            Int64("timestamp", "1+", default=-1),
            Int64("offset", "1+", default=-1),
            Int32("leader_epoch", "4+", default=-1),
            Array("old_style_offsets", "0", of=Int64),
        ],
    ],
]
