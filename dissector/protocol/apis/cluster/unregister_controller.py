"""
UnregisterController (key 94): remove a controller's registration.

Source: Kafka, UnregisterControllerRequest.json and UnregisterControllerResponse.json (Kafka 4.4).
"""

from dissector.protocol.schema import Int16, Int32, String, message

UnregisterControllerRequest = message(94, "0", flexible="0+")[Int32("controller_id"),]

UnregisterControllerResponse = message(94, "0", flexible="0+")[
    Int32("throttle_time_ms"),
    Int16("error_code"),
    String("error_message", null="0+"),
]
