"""
InitializeShareGroupState (key 83): share coordinator: initialise the state of share partitions.

Source: Kafka, InitializeShareGroupStateRequest.json and InitializeShareGroupStateResponse.json;
KIP-932.
"""

from dissector.protocol.schema import Array, Int16, Int32, Int64, String, Uuid, message

InitializeShareGroupStateRequest = message(83, "0", flexible="0+")[
    String("group_id"),
    Array("topics")[
        Uuid("topic_id"),
        Array("partitions")[
            Int32("partition"),
            Int32("state_epoch"),
            Int64("start_offset"),
        ],
    ],
]

InitializeShareGroupStateResponse = message(83, "0", flexible="0+")[
    Array("results")[
        Uuid("topic_id"),
        Array("partitions")[
            Int32("partition"),
            Int16("error_code"),
            String("error_message", null="0+", default=None),
        ],
    ],
]
