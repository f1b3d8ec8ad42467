"""
DeleteGroups (key 42): delete empty groups.

Source: Kafka, DeleteGroupsRequest.json and DeleteGroupsResponse.json; KIP-229.
"""

from dissector.protocol.schema import Array, Int16, Int32, String, message

DeleteGroupsRequest = message(42, "0-2", flexible="2+")[
    Array("groups_names", of=String, entity="groupId"),
]

DeleteGroupsResponse = message(42, "0-2", flexible="2+")[
    Int32("throttle_time_ms"),
    Array("results")[
        String("group_id", key=True, entity="groupId"),
        Int16("error_code"),
    ],
]
