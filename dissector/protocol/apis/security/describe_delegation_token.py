"""
DescribeDelegationToken (key 41): describe delegation tokens.

The token's HMAC is a secret, masked in all output.

Source: Kafka, DescribeDelegationTokenRequest.json and DescribeDelegationTokenResponse.json; KIP-48,
KIP-373 (v3).
"""

from dissector.protocol.schema import Array, Bytes, Int16, Int32, Int64, String, message

DescribeDelegationTokenRequest = message(41, "0-3", flexible="2+")[
    Array("owners", null="0+")[
        String("principal_type"),
        String("principal_name"),
    ],
]

DescribeDelegationTokenResponse = message(41, "0-3", flexible="2+")[
    Int16("error_code"),
    Array("tokens")[
        String("principal_type"),
        String("principal_name"),
        String("token_requester_principal_type", "3+"),
        String("token_requester_principal_name", "3+"),
        Int64("issue_timestamp"),
        Int64("expiry_timestamp"),
        Int64("max_timestamp"),
        String("token_id"),
        Bytes("hmac"),
        Array("renewers")[
            String("principal_type"),
            String("principal_name"),
        ],
    ],
    Int32("throttle_time_ms"),
]
