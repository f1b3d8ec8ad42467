"""
IncrementalAlterConfigs (key 44): change single configuration entries of resources.

Source: Kafka, IncrementalAlterConfigsRequest.json and IncrementalAlterConfigsResponse.json;
KIP-339.
"""

from dissector.protocol.schema import Array, Bool, Int8, Int16, Int32, String, message

IncrementalAlterConfigsRequest = message(44, "0-1", flexible="1+")[
    Array("resources")[
        Int8("resource_type", key=True),
        String("resource_name", key=True),
        Array("configs")[
            String("name", key=True),
            Int8("config_operation", key=True),
            String("value", null="0+"),
        ],
    ],
    Bool("validate_only"),
]

IncrementalAlterConfigsResponse = message(44, "0-1", flexible="1+")[
    Int32("throttle_time_ms"),
    Array("responses")[
        Int16("error_code"),
        String("error_message", null="0+"),
        Int8("resource_type"),
        String("resource_name"),
    ],
]
