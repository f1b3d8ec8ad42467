"""
AlterConfigs (key 33): replace the configuration of resources.

Source: Kafka, AlterConfigsRequest.json and AlterConfigsResponse.json; KIP-133.
"""

from dissector.protocol.schema import Array, Bool, Int8, Int16, Int32, String, message

AlterConfigsRequest = message(33, "0-2", flexible="2+")[
    Array("resources")[
        Int8("resource_type", key=True),
        String("resource_name", key=True),
        Array("configs")[
            String("name", key=True),
            String("value", null="0+"),
        ],
    ],
    Bool("validate_only"),
]

AlterConfigsResponse = message(33, "0-2", flexible="2+")[
    Int32("throttle_time_ms"),
    Array("responses")[
        Int16("error_code"),
        String("error_message", null="0+"),
        Int8("resource_type"),
        String("resource_name"),
    ],
]
