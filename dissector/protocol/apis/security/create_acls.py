"""
CreateAcls (key 30): create access control entries.

Source: Kafka, CreateAclsRequest.json and CreateAclsResponse.json; KIP-140, KIP-290 (v1).
"""

from dissector.protocol.schema import Array, Int8, Int16, Int32, String, message

CreateAclsRequest = message(30, "0-3", flexible="2+")[
    Array("creations")[
        Int8("resource_type"),
        String("resource_name"),
        Int8("resource_pattern_type", "1+", default=3),
        String("principal"),
        String("host"),
        Int8("operation"),
        Int8("permission_type"),
    ],
]

CreateAclsResponse = message(30, "0-3", flexible="2+")[
    Int32("throttle_time_ms"),
    Array("results")[
        Int16("error_code"),
        String("error_message", null="0+"),
    ],
]
