"""
DeleteGroups (key 42): delete empty groups.

Source: Kafka, DeleteGroupsRequest.json and DeleteGroupsResponse.json; KIP-229.
Version 3 came with Kafka 4.4.
"""

from dissector.protocol.schema import Array, Int16, Int32, String, message

DeleteGroupsRequest = message(42, "0-3", flexible="2+")[
    Array("groups_names", of=String, entity="groupId"),
]

DeleteGroupsResponse = message(42, "0-3", flexible="2+")[
    Int32("throttle_time_ms"),
    Array("results")[
        String("group_id", key=True, entity="groupId"),
        Int16("error_code"),
        String("error_message", "3+", null="3+", default=None, ignorable=True),
    ],
]
