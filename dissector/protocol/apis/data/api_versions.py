"""
ApiVersions (key 18): get the APIs and versions that the broker supports.

The response always has header v0, also in flexible versions.
The response to a request too new for the broker is v0 with error 35. Since v5 the response to a
request for another cluster or node has error 129.

Source: Kafka, ApiVersionsRequest.json and ApiVersionsResponse.json; KIP-35, KIP-511 (v3), KIP-584,
KIP-1242 (v5).
"""

from dissector.protocol.schema import Array, Bool, Int16, Int32, Int64, String, message

ApiVersionsRequest = message(18, "0-5", flexible="3+")[
    String("client_software_name", "3+", ignorable=True),
    String("client_software_version", "3+", ignorable=True),
    String("cluster_id", "5+", null="5+", default=None, ignorable=True),
    Int32("node_id", "5+", default=-1, ignorable=True),
]

ApiVersionsResponse = message(18, "0-5", flexible="3+")[
    Int16("error_code"),
    Array("api_keys")[
        Int16("api_key", key=True),
        Int16("min_version"),
        Int16("max_version"),
    ],
    Int32("throttle_time_ms", "1+", ignorable=True),
    Array("supported_features", "3+", tag=0, ignorable=True)[
        String("name", key=True),
        Int16("min_version"),
        Int16("max_version"),
    ],
    Int64("finalized_features_epoch", "3+", tag=1, default=-1, ignorable=True),
    Array("finalized_features", "3+", tag=2, ignorable=True)[
        String("name", key=True),
        Int16("max_version_level"),
        Int16("min_version_level"),
    ],
    Bool("zk_migration_ready", "3+", tag=3, default=False, ignorable=True),
]
