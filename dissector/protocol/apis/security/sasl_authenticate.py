"""
SaslAuthenticate (key 36): exchange one SASL token.

The tokens are secrets; `auth_bytes` is masked in all output.

Source: Kafka, SaslAuthenticateRequest.json and SaslAuthenticateResponse.json; KIP-152, KIP-368
(v1).
"""

from dissector.protocol.schema import Bytes, Int16, Int64, String, message

SaslAuthenticateRequest = message(36, "0-2", flexible="2+")[Bytes("auth_bytes"),]

SaslAuthenticateResponse = message(36, "0-2", flexible="2+")[
    Int16("error_code"),
    String("error_message", null="0+"),
    Bytes("auth_bytes"),
    Int64("session_lifetime_ms", "1+", default=0, ignorable=True),
]
