"""
PushTelemetry (key 72): push a client's metrics.

Source: Kafka, PushTelemetryRequest.json and PushTelemetryResponse.json; KIP-714.
"""

from dissector.protocol.schema import Bool, Bytes, Int8, Int16, Int32, Uuid, message

PushTelemetryRequest = message(72, "0", flexible="0+")[
    Uuid("client_instance_id"),
    Int32("subscription_id"),
    Bool("terminating"),
    Int8("compression_type"),
    Bytes("metrics"),
]

PushTelemetryResponse = message(72, "0", flexible="0+")[
    Int32("throttle_time_ms"),
    Int16("error_code"),
]
