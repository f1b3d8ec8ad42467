"""
KRaft: records of `__cluster_metadata` about brokers, controllers, features and the log itself.

Each record is framed: it follows unsigned varints of the frame version, the record type and the
record version.

Source: Kafka, metadata/src/main/resources/common/metadata; KIP-631, KIP-730, KIP-778, KIP-858,
KIP-866, KIP-919, KIP-1066 (cordoned log directories).
"""

from dissector.protocol.schema import (
    Array,
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    String,
    Uint16,
    Uuid,
    message,
)

RegisterBrokerRecord = message(0, "0-4", flexible="0+")[
    Int32("broker_id", entity="brokerId"),
    Bool("is_migrating_zk_broker", "2+", default=False),
    Uuid("incarnation_id"),
    Int64("broker_epoch"),
    Array("end_points")[
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
    Bool("fenced", default=True),
    Bool("in_controlled_shutdown", "1+", default=False),
    Array("log_dirs", "3+", of=Uuid, tag=0),
    Array("cordoned_log_dirs", "4+", of=Uuid, null="4+", tag=1, default=None),
]

UnregisterBrokerRecord = message(1, "0", flexible="0+")[
    Int32("broker_id", entity="brokerId"),
    Int64("broker_epoch"),
]

FenceBrokerRecord = message(7, "0", flexible="0+")[
    Int32("id", entity="brokerId"),
    Int64("epoch"),
]

UnfenceBrokerRecord = message(8, "0", flexible="0+")[
    Int32("id", entity="brokerId"),
    Int64("epoch"),
]

FeatureLevelRecord = message(12, "0", flexible="0+")[
    String("name"),
    Int16("feature_level"),
]

ProducerIdsRecord = message(15, "0", flexible="0+")[
    Int32("broker_id", entity="brokerId"),
    Int64("broker_epoch", default=-1),
    Int64("next_producer_id"),
]

BrokerRegistrationChangeRecord = message(17, "0-3", flexible="0+")[
    Int32("broker_id", entity="brokerId"),
    Int64("broker_epoch"),
    Int8("fenced", tag=0),
    Int8("in_controlled_shutdown", "1+", tag=1),
    Array("log_dirs", "2+", of=Uuid, tag=2),
    Array("cordoned_log_dirs", "3+", of=Uuid, null="3+", tag=3, default=None),
]

NoOpRecord = message(20, "0", flexible="0+")

ZkMigrationStateRecord = message(21, "0", flexible="0+")[Int8("zk_migration_state"),]

BeginTransactionRecord = message(23, "0", flexible="0+")[
    String("name", null="0+", tag=0, default=None),
]

EndTransactionRecord = message(24, "0", flexible="0+")

AbortTransactionRecord = message(25, "0", flexible="0+")[
    String("reason", null="0+", tag=0, default=None),
]

RegisterControllerRecord = message(27, "0", flexible="0+")[
    Int32("controller_id"),
    Uuid("incarnation_id"),
    Bool("zk_migration_ready"),
    Array("end_points")[
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

UnregisterControllerRecord = message(29, "0", flexible="0+")[Int32("controller_id"),]
