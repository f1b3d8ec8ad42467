"""
AlterUserScramCredentials (key 51): create, change or delete SCRAM credentials.

Salts and salted passwords are secrets, masked in all output.

Source: Kafka, AlterUserScramCredentialsRequest.json and AlterUserScramCredentialsResponse.json;
KIP-554.
"""

from dissector.protocol.schema import Array, Bytes, Int8, Int16, Int32, String, message

AlterUserScramCredentialsRequest = message(51, "0", flexible="0+")[
    Array("deletions")[
        String("name"),
        Int8("mechanism"),
    ],
    Array("upsertions")[
        String("name"),
        Int8("mechanism"),
        Int32("iterations"),
        Bytes("salt"),
        Bytes("salted_password"),
    ],
]

AlterUserScramCredentialsResponse = message(51, "0", flexible="0+")[
    Int32("throttle_time_ms"),
    Array("results")[
        String("user"),
        Int16("error_code"),
        String("error_message", null="0+"),
    ],
]
