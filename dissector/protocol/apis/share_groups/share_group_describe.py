"""
ShareGroupDescribe (key 77): describe share groups.

Source: Kafka, ShareGroupDescribeRequest.json and ShareGroupDescribeResponse.json; KIP-932.
"""

from dissector.protocol.schema import Array, Bool, Int16, Int32, String, Struct, Uuid, message

ShareGroupDescribeRequest = message(77, "0-1", flexible="0+")[
    Array("group_ids", of=String, entity="groupId"),
    Bool("include_authorized_operations"),
]

ShareGroupDescribeResponse = message(77, "0-1", flexible="0+")[
    Int32("throttle_time_ms"),
    Array("groups")[
        Int16("error_code"),
        String("error_message", null="0+", default=None),
        String("group_id", entity="groupId"),
        String("group_state"),
        Int32("group_epoch"),
        Int32("assignment_epoch"),
        String("assignor_name"),
        Array("members")[
            String("member_id"),
            String("rack_id", null="0+", default=None),
            Int32("member_epoch"),
            String("client_id"),
            String("client_host"),
            Array("subscribed_topic_names", of=String, entity="topicName"),
            Struct("assignment")[
                Array("topic_partitions")[
                    Uuid("topic_id"),
                    String("topic_name", entity="topicName"),
                    Array("partitions", of=Int32),
                ],
            ],
        ],
        Int32("authorized_operations", default=-2147483648),
    ],
]
