"""
UpdateFeatures (key 57): change the cluster's finalized features.

Source: Kafka, UpdateFeaturesRequest.json and UpdateFeaturesResponse.json; KIP-584, KIP-778 (v1).
"""

from dissector.protocol.schema import Array, Bool, Int8, Int16, Int32, String, message

UpdateFeaturesRequest = message(57, "0-2", flexible="0+")[
    Int32("timeout_ms", default=60000, kafka="timeoutMs"),
    Array("feature_updates")[
        String("feature", key=True),
        Int16("max_version_level"),
        Int8("upgrade_type", "1+", default=1),
        Bool("allow_downgrade", "0"),
    ],
    Bool("validate_only", "1+", default=False),
]

UpdateFeaturesResponse = message(57, "0-2", flexible="0+")[
    Int32("throttle_time_ms"),
    Int16("error_code"),
    String("error_message", null="0+"),
    Array("results", "0-1", ignorable=True)[
        String("feature", key=True),
        Int16("error_code"),
        String("error_message", null="0-1"),
    ],
]
