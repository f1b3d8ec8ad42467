"""
ControllerRegistration (key 70): controller to active controller: register a controller.

Source: Kafka, ControllerRegistrationRequest.json and ControllerRegistrationResponse.json; KIP-919.
"""

from dissector.protocol.schema import Array, Bool, Int16, Int32, String, Uint16, Uuid, message

ControllerRegistrationRequest = message(70, "0", flexible="0+")[
    Int32("controller_id"),
    Uuid("incarnation_id"),
    Bool("zk_migration_ready"),
    Array("listeners")[
        String("name", key=True),
        String("host"),
        Uint16("port"),
        Int16("security_protocol"),
    ],
    Array("features")[
        String("name", key=True),
        Int16("min_supported_version"),
        Int16("max_supported_version"),
    ],
]

ControllerRegistrationResponse = message(70, "0", flexible="0+")[
    Int32("throttle_time_ms"),
    Int16("error_code"),
    String("error_message", null="0+"),
]
