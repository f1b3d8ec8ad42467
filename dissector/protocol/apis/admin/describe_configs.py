"""
DescribeConfigs (key 32): read the configuration of topics, brokers and other resources.

Source: Kafka, DescribeConfigsRequest.json and DescribeConfigsResponse.json; KIP-133, KIP-226 (v1),
KIP-569 (v3).
"""

from dissector.protocol.schema import Array, Bool, Int8, Int16, Int32, String, message

DescribeConfigsRequest = message(32, "0-4", flexible="4+")[
    Array("resources")[
        Int8("resource_type"),
        String("resource_name"),
        Array("configuration_keys", of=String, null="0+"),
    ],
    Bool("include_synonyms", "1+", default=False),
    Bool("include_documentation", "3+", default=False),
]

DescribeConfigsResponse = message(32, "0-4", flexible="4+")[
    Int32("throttle_time_ms"),
    Array("results")[
        Int16("error_code"),
        String("error_message", null="0+"),
        Int8("resource_type"),
        String("resource_name"),
        Array("configs")[
            String("name"),
            String("value", null="0+"),
            Bool("read_only"),
            Int8("config_source", "1+", default=-1, ignorable=True),
            Bool("is_default", "0"),
            Bool("is_sensitive"),
            Array("synonyms", "1+", ignorable=True)[
                String("name"),
                String("value", null="1+"),
                Int8("source"),
            ],
            Int8("config_type", "3+", default=0, ignorable=True),
            String("documentation", "3+", null="3+", ignorable=True),
        ],
    ],
]
