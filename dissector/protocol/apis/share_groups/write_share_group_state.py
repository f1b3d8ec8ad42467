"""
WriteShareGroupState (key 85): share coordinator: write the state of share partitions.

Source: Kafka, WriteShareGroupStateRequest.json and WriteShareGroupStateResponse.json; KIP-932.
"""

from dissector.protocol.schema import Array, Int8, Int16, Int32, Int64, String, Uuid, message

WriteShareGroupStateRequest = message(85, "0-1", flexible="0+")[
    String("group_id"),
    Array("topics")[
        Uuid("topic_id"),
        Array("partitions")[
            Int32("partition"),
            Int32("state_epoch"),
            Int32("leader_epoch"),
            Int64("start_offset"),
            Int32("delivery_complete_count", "1+", default=-1, ignorable=True),
            Array("state_batches")[
                Int64("first_offset"),
                Int64("last_offset"),
                Int8("delivery_state"),
                Int16("delivery_count"),
            ],
        ],
    ],
]

WriteShareGroupStateResponse = message(85, "0-1", flexible="0+")[
    Array("results")[
        Uuid("topic_id"),
        Array("partitions")[
            Int32("partition"),
            Int16("error_code"),
            String("error_message", null="0+", default=None),
        ],
    ],
]
