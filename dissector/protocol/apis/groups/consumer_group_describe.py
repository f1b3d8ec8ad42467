"""
ConsumerGroupDescribe (key 69): describe consumer groups of the new protocol.

Source: Kafka, ConsumerGroupDescribeRequest.json and ConsumerGroupDescribeResponse.json; KIP-848.
"""

from dissector.protocol.schema import Array, Bool, Int8, Int16, Int32, String, Struct, Uuid, message

ConsumerGroupDescribeRequest = message(69, "0-1", flexible="0+")[
    Array("group_ids", of=String, entity="groupId"),
    Bool("include_authorized_operations"),
]

ConsumerGroupDescribeResponse = message(69, "0-1", flexible="0+")[
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
            String("instance_id", null="0+", default=None),
            String("rack_id", null="0+", default=None),
            Int32("member_epoch"),
            String("client_id"),
            String("client_host"),
            Array("subscribed_topic_names", of=String, entity="topicName"),
            String("subscribed_topic_regex", null="0+", default=None),
            Struct("assignment")[
                Array("topic_partitions")[
                    Uuid("topic_id"),
                    String("topic_name", entity="topicName"),
                    Array("partitions", of=Int32),
                ],
            ],
            Struct("target_assignment")[
                Array("topic_partitions")[
                    Uuid("topic_id"),
                    String("topic_name", entity="topicName"),
                    Array("partitions", of=Int32),
                ],
            ],
            Int8("member_type", "1+", default=-1, ignorable=True),
        ],
        Int32("authorized_operations", default=-2147483648),
    ],
]
