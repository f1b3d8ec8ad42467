"""
ListGroups (key 16): list the groups that a broker coordinates.

Source: Kafka, ListGroupsRequest.json and ListGroupsResponse.json; KIP-518 (v4), KIP-848 (v5).
"""

from dissector.protocol.schema import Array, Int16, Int32, String, message

ListGroupsRequest = message(16, "0-5", flexible="3+")[
    Array("states_filter", "4+", of=String),
    Array("types_filter", "5+", of=String),
]

ListGroupsResponse = message(16, "0-5", flexible="3+")[
    Int32("throttle_time_ms", "1+", ignorable=True),
    Int16("error_code"),
    Array("groups")[
        String("group_id", entity="groupId"),
        String("protocol_type"),
        String("group_state", "4+", ignorable=True),
        String("group_type", "5+", ignorable=True),
    ],
]
