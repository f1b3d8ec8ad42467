"""
BrokerHeartbeat (key 63): broker to controller: renew the registration; request fencing or shutdown.

Source: Kafka, BrokerHeartbeatRequest.json and BrokerHeartbeatResponse.json; KIP-631, KIP-858 (v1),
KIP-1066 (v2).
"""

from dissector.protocol.schema import Array, Bool, Int16, Int32, Int64, Uuid, message

BrokerHeartbeatRequest = message(63, "0-2", flexible="0+")[
    Int32("broker_id", entity="brokerId"),
    Int64("broker_epoch", default=-1),
    Int64("current_metadata_offset"),
    Bool("want_fence"),
    Bool("want_shut_down"),
    Array("offline_log_dirs", "1+", of=Uuid, tag=0),
    Array("cordoned_log_dirs", "2+", of=Uuid, null="2+", tag=1, default=None),
]

BrokerHeartbeatResponse = message(63, "0-2", flexible="0+")[
    Int32("throttle_time_ms"),
    Int16("error_code"),
    Bool("is_caught_up", default=False),
    Bool("is_fenced", default=True),
    Bool("should_shut_down"),
]
