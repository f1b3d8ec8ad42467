"""
DescribeUserScramCredentials (key 50): describe SCRAM credentials.

The response has mechanisms and iterations, never salts or keys.

Source: Kafka, DescribeUserScramCredentialsRequest.json and
DescribeUserScramCredentialsResponse.json; KIP-554.
"""

from dissector.protocol.schema import Array, Int8, Int16, Int32, String, message

DescribeUserScramCredentialsRequest = message(50, "0", flexible="0+")[
    Array("users", null="0+")[String("name"),],
]

DescribeUserScramCredentialsResponse = message(50, "0", flexible="0+")[
    Int32("throttle_time_ms"),
    Int16("error_code"),
    String("error_message", null="0+"),
    Array("results")[
        String("user"),
        Int16("error_code"),
        String("error_message", null="0+"),
        Array("credential_infos")[
            Int8("mechanism"),
            Int32("iterations"),
        ],
    ],
]
