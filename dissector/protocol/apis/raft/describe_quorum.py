"""
DescribeQuorum (key 55): describe the KRaft quorum.

Source: Kafka, DescribeQuorumRequest.json and DescribeQuorumResponse.json; KIP-595, KIP-836 (v1),
KIP-853 (v2).
"""

from dissector.protocol.schema import Array, Int16, Int32, Int64, String, Uint16, Uuid, message

DescribeQuorumRequest = message(55, "0-2", flexible="0+")[
    Array("topics")[
        String("topic_name", entity="topicName"),
        Array("partitions")[Int32("partition_index"),],
    ],
]

DescribeQuorumResponse = message(55, "0-2", flexible="0+")[
    Int16("error_code"),
    String("error_message", "2+", null="2+", ignorable=True),
    Array("topics")[
        String("topic_name", entity="topicName"),
        Array("partitions")[
            Int32("partition_index"),
            Int16("error_code"),
            String("error_message", "2+", null="2+", ignorable=True),
            Int32("leader_id", entity="brokerId"),
            Int32("leader_epoch"),
            Int64("high_watermark"),
            Array("current_voters")[
                Int32("replica_id", entity="brokerId"),
                Uuid("replica_directory_id", "2+"),
                Int64("log_end_offset"),
                Int64("last_fetch_timestamp", "1+", default=-1, ignorable=True),
                Int64("last_caught_up_timestamp", "1+", default=-1, ignorable=True),
            ],
            Array("observers")[
                Int32("replica_id", entity="brokerId"),
                Uuid("replica_directory_id", "2+"),
                Int64("log_end_offset"),
                Int64("last_fetch_timestamp", "1+", default=-1, ignorable=True),
                Int64("last_caught_up_timestamp", "1+", default=-1, ignorable=True),
            ],
        ],
    ],
    Array("nodes", "2+")[
        Int32("node_id", key=True, entity="brokerId"),
        Array("listeners")[
            String("name", key=True),
            String("host"),
            Uint16("port"),
        ],
    ],
]
