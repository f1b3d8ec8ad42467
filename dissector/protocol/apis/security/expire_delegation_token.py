"""
ExpireDelegationToken (key 40): change the expiry time of a delegation token, or expire it.

The token's HMAC is a secret, masked in all output.

Source: Kafka, ExpireDelegationTokenRequest.json and ExpireDelegationTokenResponse.json; KIP-48.
"""

from dissector.protocol.schema import Bytes, Int16, Int32, Int64, message

ExpireDelegationTokenRequest = message(40, "0-2", flexible="2+")[
    Bytes("hmac"),
    Int64("expiry_time_period_ms"),
]

ExpireDelegationTokenResponse = message(40, "0-2", flexible="2+")[
    Int16("error_code"),
    Int64("expiry_timestamp_ms"),
    Int32("throttle_time_ms"),
]
