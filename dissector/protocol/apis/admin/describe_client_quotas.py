"""
DescribeClientQuotas (key 48): read client quotas.

Source: Kafka, DescribeClientQuotasRequest.json and DescribeClientQuotasResponse.json; KIP-546.
"""

from dissector.protocol.schema import Array, Bool, Float64, Int8, Int16, Int32, String, message

DescribeClientQuotasRequest = message(48, "0-1", flexible="1+")[
    Array("components")[
        String("entity_type"),
        Int8("match_type"),
        String("match", null="0+"),
    ],
    Bool("strict"),
]

DescribeClientQuotasResponse = message(48, "0-1", flexible="1+")[
    Int32("throttle_time_ms"),
    Int16("error_code"),
    String("error_message", null="0+"),
    Array("entries", null="0+")[
        Array("entity")[
            String("entity_type"),
            String("entity_name", null="0+"),
        ],
        Array("values")[
            String("key"),
            Float64("value"),
        ],
    ],
]
