"""
DescribeProducers (key 61): describe the active producers of partitions.

Source: Kafka, DescribeProducersRequest.json and DescribeProducersResponse.json; KIP-664.
"""

from dissector.protocol.schema import Array, Int16, Int32, Int64, String, message

DescribeProducersRequest = message(61, "0", flexible="0+")[
    Array("topics")[
        String("name", key=True, entity="topicName"),
        Array("partition_indexes", of=Int32),
    ],
]

DescribeProducersResponse = message(61, "0", flexible="0+")[
    Int32("throttle_time_ms"),
    Array("topics")[
        String("name", entity="topicName"),
        Array("partitions")[
            Int32("partition_index"),
            Int16("error_code"),
            String("error_message", null="0+", default=None),
            Array("active_producers")[
                Int64("producer_id", entity="producerId"),
                Int32("producer_epoch"),
                Int32("last_sequence", default=-1),
                Int64("last_timestamp", default=-1),
                Int32("coordinator_epoch"),
                Int64("current_txn_start_offset", default=-1),
            ],
        ],
    ],
]
