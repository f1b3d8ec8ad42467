"""
DeleteAcls (key 31): delete access control entries.

Source: Kafka, DeleteAclsRequest.json and DeleteAclsResponse.json; KIP-140, KIP-290 (v1).
"""

from dissector.protocol.schema import Array, Int8, Int16, Int32, String, message

DeleteAclsRequest = message(31, "0-3", flexible="2+")[
    Array("filters")[
        Int8("resource_type_filter"),
        String("resource_name_filter", null="0+"),
        Int8("pattern_type_filter", "1+", default=3),
        String("principal_filter", null="0+"),
        String("host_filter", null="0+"),
        Int8("operation"),
        Int8("permission_type"),
    ],
]

DeleteAclsResponse = message(31, "0-3", flexible="2+")[
    Int32("throttle_time_ms"),
    Array("filter_results")[
        Int16("error_code"),
        String("error_message", null="0+"),
        Array("matching_acls")[
            Int16("error_code"),
            String("error_message", null="0+"),
            Int8("resource_type"),
            String("resource_name"),
            Int8("pattern_type", "1+", default=3),
            String("principal"),
            String("host"),
            Int8("operation"),
            Int8("permission_type"),
        ],
    ],
]
