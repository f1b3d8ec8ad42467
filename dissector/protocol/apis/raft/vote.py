"""
Vote (key 52): KRaft: request the vote of a voter.

Source: Kafka, VoteRequest.json and VoteResponse.json; KIP-595, KIP-853 (v1), KIP-996 (v2).
"""

from dissector.protocol.schema import (
    Array,
    Bool,
    Int16,
    Int32,
    Int64,
    String,
    Uint16,
    Uuid,
    message,
)

VoteRequest = message(52, "0-2", flexible="0+")[
    String("cluster_id", null="0+", default=None),
    Int32("voter_id", "1+", default=-1, ignorable=True, entity="brokerId"),
    Array("topics")[
        String("topic_name", entity="topicName"),
        Array("partitions")[
            Int32("partition_index"),
            Int32("replica_epoch"),
            Int32("replica_id", entity="brokerId"),
            Uuid("replica_directory_id", "1+", ignorable=True),
            Uuid("voter_directory_id", "1+", ignorable=True),
            Int32("last_offset_epoch"),
            Int64("last_offset"),
            Bool("pre_vote", "2+"),
        ],
    ],
]

VoteResponse = message(52, "0-2", flexible="0+")[
    Int16("error_code"),
    Array("topics")[
        String("topic_name", entity="topicName"),
        Array("partitions")[
            Int32("partition_index"),
            Int16("error_code"),
            Int32("leader_id", entity="brokerId"),
            Int32("leader_epoch"),
            Bool("vote_granted"),
        ],
    ],
    Array("node_endpoints", "1+", tag=0)[
        Int32("node_id", key=True, entity="brokerId"),
        String("host"),
        Uint16("port"),
    ],
]
