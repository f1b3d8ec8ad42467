"""
GetTelemetrySubscriptions (key 71): get the metrics that the broker requests from this client.

Source: Kafka, GetTelemetrySubscriptionsRequest.json and GetTelemetrySubscriptionsResponse.json;
KIP-714.
"""

from dissector.protocol.schema import Array, Bool, Int8, Int16, Int32, String, Uuid, message

GetTelemetrySubscriptionsRequest = message(71, "0", flexible="0+")[Uuid("client_instance_id"),]

GetTelemetrySubscriptionsResponse = message(71, "0", flexible="0+")[
    Int32("throttle_time_ms"),
    Int16("error_code"),
    Uuid("client_instance_id"),
    Int32("subscription_id"),
    Array("accepted_compression_types", of=Int8),
    Int32("push_interval_ms"),
    Int32("telemetry_max_bytes"),
    Bool("delta_temporality"),
    Array("requested_metrics", of=String),
]
