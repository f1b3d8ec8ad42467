"""
Metadata (key 3): get brokers, topics, partitions and their leaders.

v0 requests all topics by an empty array, v1+ by null.
The response of v10+ maps topic ids to names.

Source: Kafka, MetadataRequest.json and MetadataResponse.json; KIP-4 (v4), KIP-430 (v8), KIP-516
(v10).
"""

from dissector.protocol.schema import Array, Bool, Int16, Int32, String, Uuid, message

MetadataRequest = message(3, "0-13", flexible="9+")[
    Array("topics", null="1+")[
        Uuid("topic_id", "10+", ignorable=True),
        String("name", null="10+", entity="topicName"),
    ],
    Bool("allow_auto_topic_creation", "4+", default=True),
    Bool("include_cluster_authorized_operations", "8-10"),
    Bool("include_topic_authorized_operations", "8+"),
]

MetadataResponse = message(3, "0-13", flexible="9+")[
    Int32("throttle_time_ms", "3+", ignorable=True),
    Array("brokers")[
        Int32("node_id", key=True, entity="brokerId"),
        String("host"),
        Int32("port"),
        String("rack", "1+", null="1+", default=None, ignorable=True),
    ],
    String("cluster_id", "2+", null="2+", default=None, ignorable=True),
    Int32("controller_id", "1+", default=-1, ignorable=True, entity="brokerId"),
    Array("topics")[
        Int16("error_code"),
        String("name", null="12+", key=True, entity="topicName"),
        Uuid("topic_id", "10+", ignorable=True),
        Bool("is_internal", "1+", default=False, ignorable=True),
        Array("partitions")[
            Int16("error_code"),
            Int32("partition_index"),
            Int32("leader_id", entity="brokerId"),
            Int32("leader_epoch", "7+", default=-1, ignorable=True),
            Array("replica_nodes", of=Int32, entity="brokerId"),
            Array("isr_nodes", of=Int32, entity="brokerId"),
            Array("offline_replicas", "5+", of=Int32, ignorable=True, entity="brokerId"),
        ],
        Int32("topic_authorized_operations", "8+", default=-2147483648),
    ],
    Int16("error_code", "13+", ignorable=True),
    Int32("cluster_authorized_operations", "8-10", default=-2147483648),
]
