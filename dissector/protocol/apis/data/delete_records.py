"""
DeleteRecords (key 21): delete the records before an offset.

Source: Kafka, DeleteRecordsRequest.json and DeleteRecordsResponse.json; KIP-107.
"""

from dissector.protocol.schema import Array, Int16, Int32, Int64, String, message

DeleteRecordsRequest = message(21, "0-2", flexible="2+")[
    Array("topics")[
        String("name", entity="topicName"),
        Array("partitions")[
            Int32("partition_index"),
            Int64("offset"),
        ],
    ],
    Int32("timeout_ms"),
]

DeleteRecordsResponse = message(21, "0-2", flexible="2+")[
    Int32("throttle_time_ms"),
    Array("topics")[
        String("name", key=True, entity="topicName"),
        Array("partitions")[
            Int32("partition_index", key=True),
            Int64("low_watermark"),
            Int16("error_code"),
        ],
    ],
]
