"""
DefaultPrincipalData: the sender of the request in an Envelope; follows an int16 version.

Source: Kafka, DefaultPrincipalData.json; KIP-590, KIP-684.
"""

from dissector.protocol.schema import Bool, String, message

DefaultPrincipalData = message(None, "0", flexible="0+")[
    String("type"),
    String("name"),
    Bool("token_authenticated"),
]
