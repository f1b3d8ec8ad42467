"""
Tiered storage: records of `__remote_log_metadata`.

A record has no key; its value is framed like KRaft's: it begins with unsigned varints of the frame
version, the record type and the record version.

Source: Kafka, storage/src/main/resources/message, RemoteLogMetadataSerde.java; KIP-405, KIP-1003
(`custom_metadata`).
"""

from dissector.protocol.schema import (
    Array,
    Bool,
    Bytes,
    Int8,
    Int32,
    Int64,
    String,
    Struct,
    Uuid,
    message,
)

_PARTITION = Struct("topic_id_partition")[
    String("name"),
    Uuid("id"),
    Int32("partition"),
]

_SEGMENT_ID = Struct("remote_log_segment_id")[
    _PARTITION,
    Uuid("id"),
]

_LEADER_EPOCHS = Array("segment_leader_epochs")[
    Int32("leader_epoch"),
    Int64("offset"),
]

RemoteLogSegmentMetadataRecord = message(0, "0", flexible="0+")[
    _SEGMENT_ID,
    Int64("start_offset"),
    Int64("end_offset"),
    Int32("broker_id"),
    Int64("max_timestamp_ms"),
    Int64("event_timestamp_ms"),
    _LEADER_EPOCHS,
    Int32("segment_size_in_bytes"),
    Bytes("custom_metadata", null="0+", default=None),
    Int8("remote_log_segment_state"),
    Bool("txn_index_empty", tag=0),
]

RemoteLogSegmentMetadataUpdateRecord = message(1, "0", flexible="0+")[
    _SEGMENT_ID,
    Int32("broker_id"),
    Int64("event_timestamp_ms"),
    Bytes("custom_metadata", null="0+", default=None),
    Int8("remote_log_segment_state"),
]

RemotePartitionDeleteMetadataRecord = message(2, "0", flexible="0+")[
    _PARTITION,
    Int32("broker_id"),
    Int64("event_timestamp_ms"),
    Int8("remote_partition_delete_state"),
]

RemoteLogSegmentMetadataSnapshotRecord = message(3, "0", flexible="0+")[
    Uuid("segment_id"),
    Int64("start_offset"),
    Int64("end_offset"),
    Int32("broker_id"),
    Int64("max_timestamp_ms"),
    Int64("event_timestamp_ms"),
    _LEADER_EPOCHS,
    Int32("segment_size_in_bytes"),
    Bytes("custom_metadata", null="0+", default=None),
    Int8("remote_log_segment_state"),
    Bool("txn_index_empty", tag=0),
]
