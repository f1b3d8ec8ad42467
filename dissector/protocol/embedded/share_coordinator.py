"""
Share coordinator: keys and values of `__share_group_state`.

A key begins with an int16 that is its version and its type; a value with the int16 version of its
own.
As Kafka 4.0 wrote them, early access; 4.1 and 4.2 changed the values without a new version, whose
bytes then do not fit.

Source: Kafka, share-coordinator/src/main/resources/common/message (October 2024); KIP-932.
"""

from dissector.protocol.schema import (
    Array,
    Int8,
    Int16,
    Int32,
    Int64,
    String,
    Uint16,
    Uuid,
    message,
)

ShareSnapshotKey = message(0, "0")[
    String("group_id"),
    Uuid("topic_id"),
    Int32("partition"),
]

ShareSnapshotValue = message(0, "0", flexible="0+")[
    Uint16("snapshot_epoch"),
    Int32("state_epoch"),
    Int32("leader_epoch"),
    Int64("start_offset"),
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
    Uint16("snapshot_epoch"),
    Int32("leader_epoch"),
    Int64("start_offset"),
    Array("state_batches")[
        Int64("first_offset"),
        Int64("last_offset"),
        Int8("delivery_state"),
        Int16("delivery_count"),
    ],
]
