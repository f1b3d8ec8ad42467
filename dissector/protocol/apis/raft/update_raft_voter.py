"""
UpdateRaftVoter (key 82): KRaft: change a voter's endpoints or supported versions.

Source: Kafka, UpdateRaftVoterRequest.json and UpdateRaftVoterResponse.json; KIP-853.
"""

from dissector.protocol.schema import Array, Int16, Int32, String, Struct, Uint16, Uuid, message

UpdateRaftVoterRequest = message(82, "0", flexible="0+")[
    String("cluster_id", null="0+"),
    Int32("current_leader_epoch"),
    Int32("voter_id"),
    Uuid("voter_directory_id"),
    Array("listeners")[
        String("name", key=True),
        String("host"),
        Uint16("port"),
    ],
    Struct("k_raft_version_feature")[
        Int16("min_supported_version"),
        Int16("max_supported_version"),
    ],
]

UpdateRaftVoterResponse = message(82, "0", flexible="0+")[
    Int32("throttle_time_ms"),
    Int16("error_code"),
    Struct("current_leader", tag=0)[
        Int32("leader_id", default=-1, entity="brokerId"),
        Int32("leader_epoch", default=-1),
        String("host"),
        Int32("port"),
    ],
]
