"""
KRaft: records of `__cluster_metadata` about topics, partitions, configuration and security.

Each record is framed: it follows unsigned varints of the frame version, the record type and the
record version.
The records about brokers, controllers and the log itself are in `cluster_nodes`.

Source: Kafka, metadata/src/main/resources/common/metadata; KIP-631, KIP-746, KIP-801, KIP-900,
KIP-966.
"""

from dissector.protocol.schema import (
    Array,
    Bool,
    Bytes,
    Float64,
    Int8,
    Int32,
    Int64,
    String,
    Uuid,
    message,
)

TopicRecord = message(2, "0", flexible="0+")[
    String("name", entity="topicName"),
    Uuid("topic_id"),
]

PartitionRecord = message(3, "0-2", flexible="0+")[
    Int32("partition_id", default=-1),
    Uuid("topic_id"),
    Array("replicas", of=Int32, entity="brokerId"),
    Array("isr", of=Int32),
    Array("removing_replicas", of=Int32, entity="brokerId"),
    Array("adding_replicas", of=Int32, entity="brokerId"),
    Int32("leader", default=-1, entity="brokerId"),
    Int8("leader_recovery_state", tag=0, default=0),
    Int32("leader_epoch", default=-1),
    Int32("partition_epoch", default=-1),
    Array("directories", "1+", of=Uuid),
    Array(
        "eligible_leader_replicas",
        "2+",
        of=Int32,
        null="2+",
        tag=1,
        default=None,
        entity="brokerId",
    ),
    Array("last_known_elr", "2+", of=Int32, null="2+", tag=2, default=None, entity="brokerId"),
]

ConfigRecord = message(4, "0", flexible="0+")[
    Int8("resource_type"),
    String("resource_name"),
    String("name"),
    String("value", null="0+"),
]

PartitionChangeRecord = message(5, "0-2", flexible="0+")[
    Int32("partition_id", default=-1),
    Uuid("topic_id"),
    Array("isr", of=Int32, null="0+", tag=0, default=None, entity="brokerId"),
    Int32("leader", tag=1, default=-2, entity="brokerId"),
    Array("replicas", of=Int32, null="0+", tag=2, default=None, entity="brokerId"),
    Array("removing_replicas", of=Int32, null="0+", tag=3, default=None, entity="brokerId"),
    Array("adding_replicas", of=Int32, null="0+", tag=4, default=None, entity="brokerId"),
    Int8("leader_recovery_state", tag=5, default=-1),
    Array("directories", "1+", of=Uuid, null="1+", tag=8, default=None),
    Array(
        "eligible_leader_replicas",
        "2+",
        of=Int32,
        null="2+",
        tag=6,
        default=None,
        entity="brokerId",
    ),
    Array("last_known_elr", "2+", of=Int32, null="2+", tag=7, default=None, entity="brokerId"),
]

RemoveTopicRecord = message(9, "0", flexible="0+")[Uuid("topic_id"),]

DelegationTokenRecord = message(10, "0", flexible="0+")[
    String("owner"),
    String("requester"),
    Array("renewers", of=String),
    Int64("issue_timestamp"),
    Int64("max_timestamp"),
    Int64("expiration_timestamp"),
    String("token_id"),
]

UserScramCredentialRecord = message(11, "0", flexible="0+")[
    String("name"),
    Int8("mechanism"),
    Bytes("salt"),
    Bytes("stored_key"),
    Bytes("server_key"),
    Int32("iterations"),
]

ClientQuotaRecord = message(14, "0", flexible="0+")[
    Array("entity")[
        String("entity_type"),
        String("entity_name", null="0+"),
    ],
    String("key"),
    Float64("value"),
    Bool("remove"),
]

AccessControlEntryRecord = message(18, "0", flexible="0+")[
    Uuid("id"),
    Int8("resource_type"),
    String("resource_name"),
    Int8("pattern_type"),
    String("principal"),
    String("host"),
    Int8("operation"),
    Int8("permission_type"),
]

RemoveAccessControlEntryRecord = message(19, "0", flexible="0+")[Uuid("id"),]

RemoveUserScramCredentialRecord = message(22, "0", flexible="0+")[
    String("name"),
    Int8("mechanism"),
]

RemoveDelegationTokenRecord = message(26, "0", flexible="0+")[String("token_id"),]

ClearElrRecord = message(28, "0", flexible="0+")[String("topic_name", entity="topicName"),]
