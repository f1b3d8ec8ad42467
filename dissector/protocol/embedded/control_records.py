"""
Control records: key and values of the records that brokers insert between those of clients.

The key and EndTxnMarker (the value of ABORT and COMMIT) follow an int16 version. The other values
are KRaft's and have their version as first field.

Source: Kafka, ControlRecordType.java, EndTransactionMarker.java, LeaderChangeMessage.json,
SnapshotHeaderRecord.json, SnapshotFooterRecord.json, KRaftVersionRecord.json, VotersRecord.json;
KIP-98, KIP-595, KIP-630, KIP-853.
"""

from dissector.protocol.schema import (
    Array,
    Int16,
    Int32,
    Int64,
    String,
    Struct,
    Uint16,
    Uuid,
    message,
)

ControlRecordKey = message(None, "0")[Int16("type"),]

EndTxnMarker = message(None, "0")[Int32("coordinator_epoch"),]

LeaderChangeMessage = message(None, "0-1", flexible="0+")[
    Int16("version"),
    Int32("leader_id", entity="brokerId"),
    Array("voters")[
        Int32("voter_id"),
        Uuid("voter_directory_id", "1+"),
    ],
    Array("granting_voters")[
        Int32("voter_id"),
        Uuid("voter_directory_id", "1+"),
    ],
]

SnapshotHeaderRecord = message(None, "0", flexible="0+")[
    Int16("version"),
    Int64("last_contained_log_timestamp"),
]

SnapshotFooterRecord = message(None, "0", flexible="0+")[Int16("version"),]

KRaftVersionRecord = message(None, "0", flexible="0+")[
    Int16("version"),
    Int16("k_raft_version"),
]

VotersRecord = message(None, "0", flexible="0+")[
    Int16("version"),
    Array("voters")[
        Int32("voter_id", entity="brokerId"),
        Uuid("voter_directory_id"),
        Array("endpoints")[
            String("name", key=True),
            String("host"),
            Uint16("port"),
        ],
        Struct("k_raft_version_feature")[
            Int16("min_supported_version"),
            Int16("max_supported_version"),
        ],
    ],
]
