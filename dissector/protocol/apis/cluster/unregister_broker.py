"""
UnregisterBroker (key 64): remove a broker's registration.

Source: Kafka, UnregisterBrokerRequest.json and UnregisterBrokerResponse.json; KIP-631.
"""

from dissector.protocol.schema import Int16, Int32, String, message

UnregisterBrokerRequest = message(64, "0", flexible="0+")[Int32("broker_id", entity="brokerId"),]

UnregisterBrokerResponse = message(64, "0", flexible="0+")[
    Int32("throttle_time_ms"),
    Int16("error_code"),
    String("error_message", null="0+"),
]
