"""
ReadShareGroupStateSummary (key 87): share coordinator: read state summaries of share partitions.

Source: Kafka, ReadShareGroupStateSummaryRequest.json and ReadShareGroupStateSummaryResponse.json;
KIP-932.
"""

from dissector.protocol.schema import Array, Int16, Int32, Int64, String, Uuid, message

ReadShareGroupStateSummaryRequest = message(87, "0-1", flexible="0+")[
    String("group_id"),
    Array("topics")[
        Uuid("topic_id"),
        Array("partitions")[
            Int32("partition"),
            Int32("leader_epoch"),
        ],
    ],
]

ReadShareGroupStateSummaryResponse = message(87, "0-1", flexible="0+")[
    Array("results")[
        Uuid("topic_id"),
        Array("partitions")[
            Int32("partition"),
            Int16("error_code"),
            String("error_message", null="0+", default=None),
            Int32("state_epoch"),
            Int32("leader_epoch"),
            Int64("start_offset"),
            Int32("delivery_complete_count", "1+", default=-1, ignorable=True),
        ],
    ],
]
