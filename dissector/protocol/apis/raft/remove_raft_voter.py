"""
RemoveRaftVoter (key 81): KRaft: remove a voter.

Source: Kafka, RemoveRaftVoterRequest.json and RemoveRaftVoterResponse.json; KIP-853.
"""

from dissector.protocol.schema import Int16, Int32, String, Uuid, message

RemoveRaftVoterRequest = message(81, "0", flexible="0+")[
    String("cluster_id", null="0+"),
    Int32("voter_id"),
    Uuid("voter_directory_id"),
]

RemoveRaftVoterResponse = message(81, "0", flexible="0+")[
    Int32("throttle_time_ms"),
    Int16("error_code"),
    String("error_message", null="0+", ignorable=True),
]
