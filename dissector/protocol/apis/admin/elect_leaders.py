"""
ElectLeaders (key 43): elect leaders for partitions.

v0 elects preferred leaders only.

Source: Kafka, ElectLeadersRequest.json and ElectLeadersResponse.json; KIP-183, KIP-460 (v1).
"""

from dissector.protocol.schema import Array, Int8, Int16, Int32, String, message

ElectLeadersRequest = message(43, "0-2", flexible="2+")[
    Int8("election_type", "1+"),
    Array("topic_partitions", null="0+")[
        String("topic", key=True, entity="topicName"),
        Array("partitions", of=Int32),
    ],
    Int32("timeout_ms", default=60000),
]

ElectLeadersResponse = message(43, "0-2", flexible="2+")[
    Int32("throttle_time_ms"),
    Int16("error_code", "1+"),
    Array("replica_election_results")[
        String("topic", entity="topicName"),
        Array("partition_result")[
            Int32("partition_id"),
            Int16("error_code"),
            String("error_message", null="0+"),
        ],
    ],
]
