"""
BrokerRegistration (key 62): broker to controller: register a broker that starts.

Source: Kafka, BrokerRegistrationRequest.json and BrokerRegistrationResponse.json; KIP-631, KIP-858
(v2).
"""

from dissector.protocol.schema import (
    Array,
    Bool,
    Int16,
    Int32,
    Int64,
    String,
    Uint16,
    Uuid,
    message,
)

BrokerRegistrationRequest = message(62, "0-4", flexible="0+")[
    Int32("broker_id", entity="brokerId"),
    String("cluster_id"),
    Uuid("incarnation_id"),
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
    String("rack", null="0+"),
    Bool("is_migrating_zk_broker", "1+", default=False),
    Array("log_dirs", "2+", of=Uuid, ignorable=True),
    Int64("previous_broker_epoch", "3+", default=-1, ignorable=True),
]

BrokerRegistrationResponse = message(62, "0-4", flexible="0+")[
    Int32("throttle_time_ms"),
    Int16("error_code"),
    Int64("broker_epoch", default=-1),
]
