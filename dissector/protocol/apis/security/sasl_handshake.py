"""
SaslHandshake (key 17): choose a SASL mechanism.

v0 is followed by raw tokens without Kafka headers, v1 by SaslAuthenticate requests.

Source: Kafka, SaslHandshakeRequest.json and SaslHandshakeResponse.json; KIP-43, KIP-152 (v1).
"""

from dissector.protocol.schema import Array, Int16, String, message

SaslHandshakeRequest = message(17, "0-1")[String("mechanism"),]

SaslHandshakeResponse = message(17, "0-1")[
    Int16("error_code"),
    Array("mechanisms", of=String),
]
