"""
Connect protocol: metadata and assignment of a worker in a Connect cluster.

Follows an int16 version in the group messages, like the consumer protocol. v0 is the protocol named
`default` (eager), v1 `compatible` (KIP-415, incremental cooperative), v2 `sessioned` (KIP-507),
which is encoded like v1. Task -1 is the connector itself. `allocation` holds the worker's current
ConnectAssignment, preceded by its version.

Source: Kafka, ConnectProtocol.java and IncrementalCooperativeConnectProtocol.java; KIP-415 (v1),
KIP-507 (v2).
"""

from dissector.protocol.schema import Array, Bytes, Int16, Int32, Int64, String, message

ConnectWorkerMetadata = message(None, "0-2")[
    String("url"),
    Int64("config_offset"),
    Bytes("allocation", "1+", null="1+", default=None),
]

ConnectAssignment = message(None, "0-2")[
    Int16("error"),
    String("leader"),
    String("leader_url"),
    Int64("config_offset"),
    Array("assignment", null="1+")[
        String("connector"),
        Array("tasks", of=Int32),
    ],
    Array("revoked", "1+", null="1+")[
        String("connector"),
        Array("tasks", of=Int32),
    ],
]
