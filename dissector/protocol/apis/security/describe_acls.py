"""
DescribeAcls (key 29): list access control entries.

Source: Kafka, DescribeAclsRequest.json and DescribeAclsResponse.json; KIP-140, KIP-290 (v1).
"""

from dissector.protocol.schema import Array, Int8, Int16, Int32, String, message

DescribeAclsRequest = message(29, "0-3", flexible="2+")[
    Int8("resource_type_filter"),
    String("resource_name_filter", null="0+"),
    Int8("pattern_type_filter", "1+", default=3),
    String("principal_filter", null="0+"),
    String("host_filter", null="0+"),
    Int8("operation"),
    Int8("permission_type"),
]

DescribeAclsResponse = message(29, "0-3", flexible="2+")[
    Int32("throttle_time_ms"),
    Int16("error_code"),
    String("error_message", null="0+"),
    Array("resources")[
        Int8("resource_type"),
        String("resource_name"),
        Int8("pattern_type", "1+", default=3),
        Array("acls")[
            String("principal"),
            String("host"),
            Int8("operation"),
            Int8("permission_type"),
        ],
    ],
]
