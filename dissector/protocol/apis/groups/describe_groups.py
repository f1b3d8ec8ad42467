"""
DescribeGroups (key 15): describe classic consumer groups and their members.

`member_metadata` and `member_assignment` hold bytes of the embedded consumer protocol.

Source: Kafka, DescribeGroupsRequest.json and DescribeGroupsResponse.json; KIP-345 (v4), KIP-1043
(v6).
"""

from dissector.protocol.schema import Array, Bool, Bytes, Int16, Int32, String, message

DescribeGroupsRequest = message(15, "0-6", flexible="5+")[
    Array("groups", of=String, entity="groupId"),
    Bool("include_authorized_operations", "3+"),
]

DescribeGroupsResponse = message(15, "0-6", flexible="5+")[
    Int32("throttle_time_ms", "1+", ignorable=True),
    Array("groups")[
        Int16("error_code"),
        String("error_message", "6+", null="6+", default=None),
        String("group_id", entity="groupId"),
        String("group_state"),
        String("protocol_type"),
        String("protocol_data"),
        Array("members")[
            String("member_id"),
            String("group_instance_id", "4+", null="4+", default=None, ignorable=True),
            String("client_id"),
            String("client_host"),
            Bytes("member_metadata"),
            Bytes("member_assignment"),
        ],
        Int32("authorized_operations", "3+", default=-2147483648),
    ],
]
