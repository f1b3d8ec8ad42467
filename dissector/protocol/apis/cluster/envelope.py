"""
Envelope (key 58): broker to controller: forward a client's request.

`request_data` and `response_data` hold a whole request and response, header included.

Source: Kafka, EnvelopeRequest.json and EnvelopeResponse.json; KIP-590.
"""

from dissector.protocol.schema import Bytes, Int16, message

EnvelopeRequest = message(58, "0", flexible="0+")[
    Bytes("request_data"),
    Bytes("request_principal", null="0+"),
    Bytes("client_host_address"),
]

EnvelopeResponse = message(58, "0", flexible="0+")[
    Bytes("response_data", null="0+", default=None),
    Int16("error_code"),
]
