"""
ShareAcknowledge (key 79): acknowledge records of share partitions.

Source: Kafka, ShareAcknowledgeRequest.json and ShareAcknowledgeResponse.json; KIP-932.
"""

from dissector.protocol.schema import (
    Array,
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    String,
    Struct,
    Uuid,
    message,
)

ShareAcknowledgeRequest = message(79, "0-2", flexible="0+")[
    String("group_id", null="0+", default=None, entity="groupId"),
    String("member_id", null="0+"),
    Int32("share_session_epoch"),
    Bool("is_renew_ack", "2+", default=False),
    Array("topics")[
        Uuid("topic_id", key=True),
        Array("partitions")[
            Int32("partition_index", key=True),
            Array("acknowledgement_batches")[
                Int64("first_offset"),
                Int64("last_offset"),
                Array("acknowledge_types", of=Int8),
            ],
        ],
    ],
]

ShareAcknowledgeResponse = message(79, "0-2", flexible="0+")[
    Int32("throttle_time_ms"),
    Int16("error_code"),
    String("error_message", null="0+", default=None),
    Int32("acquisition_lock_timeout_ms", "2+", ignorable=True),
    Array("responses")[
        Uuid("topic_id", key=True),
        Array("partitions")[
            Int32("partition_index"),
            Int16("error_code"),
            String("error_message", null="0+", default=None),
            Struct("current_leader")[
                Int32("leader_id"),
                Int32("leader_epoch"),
            ],
        ],
    ],
    Array("node_endpoints")[
        Int32("node_id", key=True, entity="brokerId"),
        String("host"),
        Int32("port"),
        String("rack", null="0+", default=None),
    ],
]
