"""
BeginQuorumEpoch (key 53): KRaft: a new leader announces itself to the voters.

Source: Kafka, BeginQuorumEpochRequest.json and BeginQuorumEpochResponse.json; KIP-595, KIP-853
(v1).
"""

from dissector.protocol.schema import Array, Int16, Int32, String, Uint16, Uuid, message

BeginQuorumEpochRequest = message(53, "0-1", flexible="1+")[
    String("cluster_id", null="0+", default=None),
    Int32("voter_id", "1+", default=-1, ignorable=True, entity="brokerId"),
    Array("topics")[
        String("topic_name", entity="topicName"),
        Array("partitions")[
            Int32("partition_index"),
            Uuid("voter_directory_id", "1+", ignorable=True),
            Int32("leader_id", entity="brokerId"),
            Int32("leader_epoch"),
        ],
    ],
    Array("leader_endpoints", "1+", ignorable=True)[
        String("name", key=True),
        String("host"),
        Uint16("port"),
    ],
]

BeginQuorumEpochResponse = message(53, "0-1", flexible="1+")[
    Int16("error_code"),
    Array("topics")[
        String("topic_name", entity="topicName"),
        Array("partitions")[
            Int32("partition_index"),
            Int16("error_code"),
            Int32("leader_id", entity="brokerId"),
            Int32("leader_epoch"),
        ],
    ],
    Array("node_endpoints", "1+", tag=0)[
        Int32("node_id", key=True, entity="brokerId"),
        String("host"),
        Uint16("port"),
    ],
]
