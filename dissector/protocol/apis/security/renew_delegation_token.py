"""
RenewDelegationToken (key 39): renew a delegation token.

The token's HMAC is a secret, masked in all output.

Source: Kafka, RenewDelegationTokenRequest.json and RenewDelegationTokenResponse.json; KIP-48.
"""

from dissector.protocol.schema import Bytes, Int16, Int32, Int64, message

RenewDelegationTokenRequest = message(39, "0-2", flexible="2+")[
    Bytes("hmac"),
    Int64("renew_period_ms"),
]

RenewDelegationTokenResponse = message(39, "0-2", flexible="2+")[
    Int16("error_code"),
    Int64("expiry_timestamp_ms"),
    Int32("throttle_time_ms"),
]
