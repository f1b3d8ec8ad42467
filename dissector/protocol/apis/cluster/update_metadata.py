"""
UpdateMetadata (key 6): controller to broker: update the cluster's metadata.

Removed with ZooKeeper in Kafka 4.0.

Source: Kafka, UpdateMetadataRequest.json and UpdateMetadataResponse.json; KIP-103, KIP-380.
"""

from dissector.protocol.schema import Array, Bool, Int8, Int16, Int32, Int64, String, Uuid, message

UpdateMetadataRequest = message(6, "0-8", flexible="6+")[
    Int32("controller_id", entity="brokerId"),
    Bool("is_k_raft_controller", "8+", default=False, kafka="isKRaftController"),
    Int8("type", "8+", tag=0, default=0),
    Int32("controller_epoch"),
    Int64("broker_epoch", "5+", default=-1, ignorable=True),
    Array("topic_states", "5+")[
        String("topic_name", entity="topicName"),
        Uuid("topic_id", "7+", ignorable=True),
        Array("partition_states")[
            Int32("partition_index"),
            Int32("controller_epoch"),
            Int32("leader", entity="brokerId"),
            Int32("leader_epoch"),
            Array("isr", of=Int32, entity="brokerId"),
            Int32("zk_version"),
            Array("replicas", of=Int32, entity="brokerId"),
            Array("offline_replicas", of=Int32, ignorable=True, entity="brokerId"),
        ],
    ],
    Array("ungrouped_partition_states", "0-4")[
        String("topic_name", ignorable=True, entity="topicName"),
        Int32("partition_index"),
        Int32("controller_epoch"),
        Int32("leader", entity="brokerId"),
        Int32("leader_epoch"),
        Array("isr", of=Int32, entity="brokerId"),
        Int32("zk_version"),
        Array("replicas", of=Int32, entity="brokerId"),
        Array("offline_replicas", "4", of=Int32, ignorable=True, entity="brokerId"),
    ],
    Array("live_brokers")[
        Int32("id", entity="brokerId"),
        Array("endpoints", "1+", ignorable=True)[
            Int32("port"),
            String("host"),
            String("listener", "3+", ignorable=True),
            Int16("security_protocol"),
        ],
        String("rack", "2+", null="2+", ignorable=True),
        String("v0_host", "0", ignorable=True),
        Int32("v0_port", "0", ignorable=True),
    ],
]

UpdateMetadataResponse = message(6, "0-8", flexible="6+")[Int16("error_code"),]
