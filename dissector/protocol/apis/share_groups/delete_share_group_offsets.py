"""
DeleteShareGroupOffsets (key 92): delete the offsets of a share group.

Source: Kafka, DeleteShareGroupOffsetsRequest.json and DeleteShareGroupOffsetsResponse.json;
KIP-932.
"""

from dissector.protocol.schema import Array, Int16, Int32, String, Uuid, message

DeleteShareGroupOffsetsRequest = message(92, "0", flexible="0+")[
    String("group_id", entity="groupId"),
    Array("topics")[String("topic_name", entity="topicName"),],
]

DeleteShareGroupOffsetsResponse = message(92, "0", flexible="0+")[
    Int32("throttle_time_ms"),
    Int16("error_code"),
    String("error_message", null="0+", default=None),
    Array("responses")[
        String("topic_name", entity="topicName"),
        Uuid("topic_id"),
        Int16("error_code"),
        String("error_message", null="0+", default=None),
    ],
]
