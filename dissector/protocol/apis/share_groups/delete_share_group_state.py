"""
DeleteShareGroupState (key 86): share coordinator: delete the state of share partitions.

Source: Kafka, DeleteShareGroupStateRequest.json and DeleteShareGroupStateResponse.json; KIP-932.
"""

from dissector.protocol.schema import Array, Int16, Int32, String, Uuid, message

DeleteShareGroupStateRequest = message(86, "0", flexible="0+")[
    String("group_id"),
    Array("topics")[
        Uuid("topic_id"),
        Array("partitions")[Int32("partition"),],
    ],
]

DeleteShareGroupStateResponse = message(86, "0", flexible="0+")[
    Array("results")[
        Uuid("topic_id"),
        Array("partitions")[
            Int32("partition"),
            Int16("error_code"),
            String("error_message", null="0+", default=None),
        ],
    ],
]
