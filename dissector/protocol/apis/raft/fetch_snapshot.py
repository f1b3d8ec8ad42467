"""
FetchSnapshot (key 59): KRaft: read a chunk of a snapshot.

Source: Kafka, FetchSnapshotRequest.json and FetchSnapshotResponse.json; KIP-630, KIP-853 (v1).
"""

from dissector.protocol.schema import (
    Array,
    Int16,
    Int32,
    Int64,
    Records,
    String,
    Struct,
    Uint16,
    Uuid,
    message,
)

FetchSnapshotRequest = message(59, "0-1", flexible="0+")[
    String("cluster_id", null="0+", tag=0, default=None),
    Int32("replica_id", default=-1, entity="brokerId"),
    Int32("max_bytes", default=0x7FFFFFFF),
    Array("topics")[
        String("name", entity="topicName"),
        Array("partitions")[
            Int32("partition"),
            Int32("current_leader_epoch"),
            Struct("snapshot_id")[
                Int64("end_offset"),
                Int32("epoch"),
            ],
            Int64("position"),
            Uuid("replica_directory_id", "1+", tag=0, ignorable=True),
        ],
    ],
]

FetchSnapshotResponse = message(59, "0-1", flexible="0+")[
    Int32("throttle_time_ms", ignorable=True),
    Int16("error_code"),
    Array("topics")[
        String("name", entity="topicName"),
        Array("partitions")[
            Int32("index"),
            Int16("error_code"),
            Struct("snapshot_id")[
                Int64("end_offset"),
                Int32("epoch"),
            ],
            Struct("current_leader", tag=0)[
                Int32("leader_id", entity="brokerId"),
                Int32("leader_epoch"),
            ],
            Int64("size"),
            Int64("position"),
            Records("unaligned_records"),
        ],
    ],
    Array("node_endpoints", "1+", tag=0)[
        Int32("node_id", key=True, entity="brokerId"),
        String("host"),
        Uint16("port"),
    ],
]
