"""
ListConfigResources (key 74): list configuration resources.

v0 lists client metrics resources only.

Source: Kafka, ListConfigResourcesRequest.json and ListConfigResourcesResponse.json; KIP-714,
KIP-1142 (v1).
"""

from dissector.protocol.schema import Array, Int8, Int16, Int32, String, message

ListConfigResourcesRequest = message(74, "0-1", flexible="0+")[
    Array("resource_types", "1+", of=Int8),
]

ListConfigResourcesResponse = message(74, "0-1", flexible="0+")[
    Int32("throttle_time_ms"),
    Int16("error_code"),
    Array("config_resources")[
        String("resource_name"),
        Int8("resource_type", "1+", default=16, ignorable=True),
    ],
]
