"""
CreateDelegationToken (key 38): create a delegation token.

The token's HMAC is a secret, masked in all output.

Source: Kafka, CreateDelegationTokenRequest.json and CreateDelegationTokenResponse.json; KIP-48,
KIP-373 (v3).
"""

from dissector.protocol.schema import Array, Bytes, Int16, Int32, Int64, String, message

CreateDelegationTokenRequest = message(38, "0-3", flexible="2+")[
    String("owner_principal_type", "3+", null="3+"),
    String("owner_principal_name", "3+", null="3+"),
    Array("renewers")[
        String("principal_type"),
        String("principal_name"),
    ],
    Int64("max_lifetime_ms"),
]

CreateDelegationTokenResponse = message(38, "0-3", flexible="2+")[
    Int16("error_code"),
    String("principal_type"),
    String("principal_name"),
    String("token_requester_principal_type", "3+"),
    String("token_requester_principal_name", "3+"),
    Int64("issue_timestamp_ms"),
    Int64("expiry_timestamp_ms"),
    Int64("max_timestamp_ms"),
    String("token_id"),
    Bytes("hmac"),
    Int32("throttle_time_ms"),
]
