"""
EndQuorumEpoch (key 54): KRaft: a leader resigns.

Source: Kafka, EndQuorumEpochRequest.json and EndQuorumEpochResponse.json; KIP-595, KIP-853 (v1).
"""

from dissector.protocol.schema import Array, Int16, Int32, String, Uint16, Uuid, message

EndQuorumEpochRequest = message(54, "0-1", flexible="1+")[
    String("cluster_id", null="0+", default=None),
    Array("topics")[
        String("topic_name", entity="topicName"),
        Array("partitions")[
            Int32("partition_index"),
            Int32("leader_id", entity="brokerId"),
            Int32("leader_epoch"),
            Array("preferred_candidates", "1+", ignorable=True)[
                Int32("candidate_id", entity="brokerId"),
                Uuid("candidate_directory_id"),
            ],
            Array("preferred_successors", "0", of=Int32, ignorable=True),
        ],
    ],
    Array("leader_endpoints", "1+", ignorable=True)[
        String("name", key=True),
        String("host"),
        Uint16("port"),
    ],
]

EndQuorumEpochResponse = message(54, "0-1", flexible="1+")[
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
