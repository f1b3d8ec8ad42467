"""
Share coordinator: keys and values of `__share_group_state`.

A key begins with an int16 that is both its version and its type, a value with its int16 version.
Declared as Kafka 4.1 and later write them. The early access release in 4.0 had other fields in the
same versions of the values; such bytes do not match.

Source: Kafka, share-coordinator/src/main/resources/common/message; KIP-932, KIP-1226
(`delivery_complete_count`).
"""

from dissector.protocol.schema import (
    Array,
    Int8,
    Int16,
    Int32,
    Int64,
    String,
    Uuid,
    message,
)

ShareSnapshotKey = message(0, "0")[
    String("group_id"),
    Uuid("topic_id"),
    Int32("partition"),
]

ShareSnapshotValue = message(0, "0", flexible="0+")[
    Int32("snapshot_epoch"),
    Int32("state_epoch"),
    Int32("leader_epoch"),
    Int64("start_offset"),
    Int32("delivery_complete_count", tag=0, default=-1),
    Int64("create_timestamp"),
    Int64("write_timestamp"),
    Array("state_batches")[
        Int64("first_offset"),
        Int64("last_offset"),
        Int8("delivery_state"),
        Int16("delivery_count"),
    ],
]

ShareUpdateKey = message(1, "1")[
    String("group_id"),
    Uuid("topic_id"),
    Int32("partition"),
]

ShareUpdateValue = message(1, "0", flexible="0+")[
    Int32("snapshot_epoch"),
    Int32("leader_epoch"),
    Int64("start_offset"),
    Int32("delivery_complete_count", tag=0, default=-1),
    Array("state_batches")[
        Int64("first_offset"),
        Int64("last_offset"),
        Int8("delivery_state"),
        Int16("delivery_count"),
    ],
]
