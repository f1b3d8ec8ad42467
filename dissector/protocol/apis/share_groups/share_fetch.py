"""
ShareFetch (key 78): acquire records from share partitions, and acknowledge earlier ones.

Source: Kafka, ShareFetchRequest.json and ShareFetchResponse.json; KIP-932.
"""

from dissector.protocol.schema import (
    Array,
    Bool,
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

ShareFetchRequest = message(78, "0-2", flexible="0+")[
    String("group_id", null="0+", default=None, entity="groupId"),
    String("member_id", null="0+"),
    Int32("share_session_epoch"),
    Int32("max_wait_ms"),
    Int32("min_bytes"),
    Int32("max_bytes", default=0x7FFFFFFF),
    Int32("max_records", "1+"),
    Int32("batch_size", "1+"),
    Int8("share_acquire_mode", "2+", default=0, ignorable=True),
    Bool("is_renew_ack", "2+", default=False),
    Array("topics")[
        Uuid("topic_id", key=True),
        Array("partitions")[
            Int32("partition_index", key=True),
            Int32("partition_max_bytes", "0"),
            Array("acknowledgement_batches")[
                Int64("first_offset"),
                Int64("last_offset"),
                Array("acknowledge_types", of=Int8),
            ],
        ],
    ],
    Array("forgotten_topics_data")[
        Uuid("topic_id"),
        Array("partitions", of=Int32),
    ],
]

ShareFetchResponse = message(78, "0-2", flexible="0+")[
    Int32("throttle_time_ms"),
    Int16("error_code"),
    String("error_message", null="0+", default=None),
    Int32("acquisition_lock_timeout_ms", "1+"),
    Array("responses")[
        Uuid("topic_id", key=True),
        Array("partitions")[
            Int32("partition_index"),
            Int16("error_code"),
            String("error_message", null="0+", default=None),
            Int16("acknowledge_error_code"),
            String("acknowledge_error_message", null="0+", default=None),
            Struct("current_leader")[
                Int32("leader_id"),
                Int32("leader_epoch"),
            ],
            Records("records", null="0"),
            Array("acquired_records")[
                Int64("first_offset"),
                Int64("last_offset"),
                Int16("delivery_count"),
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
