"""
Fetch (key 1): read record batches from partitions, as a consumer or as a replica.

v7+ has incremental fetch sessions: a request lists only changed partitions, a response only
partitions with new data.
v13+ identifies topics by id only.
v15+ has the replica in a tagged field.

Source: Kafka, FetchRequest.json and FetchResponse.json; KIP-227 (v7), KIP-320 (v9), KIP-392 (v11),
KIP-595 (v12), KIP-516 (v13), KIP-903 (v15), KIP-951 (v16).
"""

from dissector.protocol.schema import (
    Array,
    Int8,
    Int16,
    Int32,
    Int64,
    Records,
    String,
    Struct,
    Uuid,
    message,
)

FetchRequest = message(1, "0-18", flexible="12+")[
    String("cluster_id", "12+", null="12+", tag=0, default=None, ignorable=True),
    Struct("replica_state", "15+", tag=1)[
        Int32("replica_id", default=-1, entity="brokerId"),
        Int64("replica_epoch", default=-1),
    ],
    Int32("replica_id", "0-14", default=-1, entity="brokerId"),
    Int32("max_wait_ms"),
    Int32("min_bytes"),
    Int32("max_bytes", "3+", default=0x7FFFFFFF, ignorable=True),
    Int8("isolation_level", "4+", default=0, ignorable=True),
    Int32("session_id", "7+", default=0, ignorable=True),
    Int32("session_epoch", "7+", default=-1, ignorable=True),
    Array("topics")[
        Uuid("topic_id", "13+", ignorable=True),
        String("topic", "0-12", ignorable=True, entity="topicName"),
        Array("partitions")[
            Int32("partition"),
            Int32("current_leader_epoch", "9+", default=-1, ignorable=True),
            Int64("fetch_offset"),
            Int32("last_fetched_epoch", "12+", default=-1),
            Int64("log_start_offset", "5+", default=-1, ignorable=True),
            Int32("partition_max_bytes"),
            Uuid("replica_directory_id", "17+", tag=0, ignorable=True),
            Int64("high_watermark", "18+", tag=1, default=9223372036854775807, ignorable=True),
        ],
    ],
    Array("forgotten_topics_data", "7+")[
        Uuid("topic_id", "13+", ignorable=True),
        String("topic", "7-12", ignorable=True, entity="topicName"),
        Array("partitions", of=Int32),
    ],
    String("rack_id", "11+", default="", ignorable=True),
]

FetchResponse = message(1, "0-18", flexible="12+")[
    Int32("throttle_time_ms", "1+", ignorable=True),
    Int16("error_code", "7+", ignorable=True),
    Int32("session_id", "7+", default=0),
    Array("responses")[
        Uuid("topic_id", "13+", ignorable=True),
        String("topic", "0-12", ignorable=True, entity="topicName"),
        Array("partitions")[
            Int32("partition_index"),
            Int16("error_code"),
            Int64("high_watermark"),
            Int64("last_stable_offset", "4+", default=-1, ignorable=True),
            Int64("log_start_offset", "5+", default=-1, ignorable=True),
            Struct("diverging_epoch", "12+", tag=0)[
                Int32("epoch", default=-1),
                Int64("end_offset", default=-1),
            ],
            Struct("current_leader", "12+", tag=1)[
                Int32("leader_id", default=-1, entity="brokerId"),
                Int32("leader_epoch", default=-1),
            ],
            Struct("snapshot_id", "12+", tag=2)[
                Int64("end_offset", default=-1),
                Int32("epoch", default=-1),
            ],
            Array("aborted_transactions", "4+", null="4+", ignorable=True)[
                Int64("producer_id", entity="producerId"),
                Int64("first_offset"),
            ],
            Int32("preferred_read_replica", "11+", default=-1, entity="brokerId"),
            Records("records", null="0+"),
        ],
    ],
    Array("node_endpoints", "16+", tag=0)[
        Int32("node_id", key=True, entity="brokerId"),
        String("host"),
        Int32("port"),
        String("rack", null="16+", default=None),
    ],
]
