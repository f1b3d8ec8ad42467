"""
AlterClientQuotas (key 49): change client quotas.

Source: Kafka, AlterClientQuotasRequest.json and AlterClientQuotasResponse.json; KIP-546.
"""

from dissector.protocol.schema import Array, Bool, Float64, Int16, Int32, String, message

AlterClientQuotasRequest = message(49, "0-1", flexible="1+")[
    Array("entries")[
        Array("entity")[
            String("entity_type"),
            String("entity_name", null="0+"),
        ],
        Array("ops")[
            String("key"),
            Float64("value"),
            Bool("remove"),
        ],
    ],
    Bool("validate_only"),
]

AlterClientQuotasResponse = message(49, "0-1", flexible="1+")[
    Int32("throttle_time_ms"),
    Array("entries")[
        Int16("error_code"),
        String("error_message", null="0+"),
        Array("entity")[
            String("entity_type"),
            String("entity_name", null="0+"),
        ],
    ],
]
