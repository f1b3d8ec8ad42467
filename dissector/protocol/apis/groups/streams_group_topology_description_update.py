"""
StreamsGroupTopologyDescriptionUpdate (key 93): describe the topology of a streams group.

A member sends it when the response to its heartbeat requests it.

Source: Kafka, StreamsGroupTopologyDescriptionUpdateRequest.json and
StreamsGroupTopologyDescriptionUpdateResponse.json; KIP-1331.
"""

from dissector.protocol.schema import Array, Int8, Int16, Int32, String, Struct, message

_NODE = (
    String("name"),
    Int8("node_type"),
    Array("source_topics", of=String, entity="topicName"),
    String("sink_topic", null="0+", default=None, entity="topicName"),
    Array("stores", of=String),
    Array("successors", of=String),
)

StreamsGroupTopologyDescriptionUpdateRequest = message(93, "0", flexible="0+")[
    String("group_id", entity="groupId"),
    String("member_id"),
    Int32("topology_epoch"),
    Struct("topology_description")[
        Array("subtopologies")[
            String("subtopology_id"),
            Array("nodes")[_NODE],
        ],
        Array("global_stores")[
            Struct("source")[_NODE],
            Struct("processor")[_NODE],
        ],
    ],
]

StreamsGroupTopologyDescriptionUpdateResponse = message(93, "0", flexible="0+")[
    Int32("throttle_time_ms"),
    Int16("error_code"),
    String("error_message", null="0+", default=None),
]
