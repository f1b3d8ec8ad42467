"""
AddRaftVoter (key 80): KRaft: add a voter.

Source: Kafka, AddRaftVoterRequest.json and AddRaftVoterResponse.json; KIP-853.
"""

from dissector.protocol.schema import Array, Bool, Int16, Int32, String, Uint16, Uuid, message

AddRaftVoterRequest = message(80, "0-1", flexible="0+")[
    String("cluster_id", null="0+"),
    Int32("timeout_ms"),
    Int32("voter_id"),
    Uuid("voter_directory_id"),
    Array("listeners")[
        String("name", key=True),
        String("host"),
        Uint16("port"),
    ],
    Bool("ack_when_committed", "1+", default=True),
]

AddRaftVoterResponse = message(80, "0-1", flexible="0+")[
    Int32("throttle_time_ms"),
    Int16("error_code"),
    String("error_message", null="0+", ignorable=True),
]
