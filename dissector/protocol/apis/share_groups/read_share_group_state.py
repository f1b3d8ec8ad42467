"""
ReadShareGroupState (key 84): share coordinator: read the state of share partitions.

Source: Kafka, ReadShareGroupStateRequest.json and ReadShareGroupStateResponse.json; KIP-932.
"""

from dissector.protocol.schema import Array, Int8, Int16, Int32, Int64, String, Uuid, message

ReadShareGroupStateRequest = message(84, "0", flexible="0+")[
    String("group_id"),
    Array("topics")[
        Uuid("topic_id"),
        Array("partitions")[
            Int32("partition"),
            Int32("leader_epoch"),
        ],
    ],
]

ReadShareGroupStateResponse = message(84, "0", flexible="0+")[
    Array("results")[
        Uuid("topic_id"),
        Array("partitions")[
            Int32("partition"),
            Int16("error_code"),
            String("error_message", null="0+", default=None),
            Int32("state_epoch"),
            Int64("start_offset"),
            Array("state_batches")[
                Int64("first_offset"),
                Int64("last_offset"),
                Int8("delivery_state"),
                Int16("delivery_count"),
            ],
        ],
    ],
]
