"""
WriteTxnMarkers (key 27): coordinator to leader: write the markers that end transactions.

Source: Kafka, WriteTxnMarkersRequest.json and WriteTxnMarkersResponse.json; KIP-98.
"""

from dissector.protocol.schema import Array, Bool, Int8, Int16, Int32, Int64, String, message

WriteTxnMarkersRequest = message(27, "0-2", flexible="1+")[
    Array("markers")[
        Int64("producer_id", entity="producerId"),
        Int16("producer_epoch"),
        Bool("transaction_result"),
        Array("topics")[
            String("name", entity="topicName"),
            Array("partition_indexes", of=Int32),
        ],
        Int32("coordinator_epoch"),
        Int8("transaction_version", "2+", default=0, ignorable=True),
    ],
]

WriteTxnMarkersResponse = message(27, "0-2", flexible="1+")[
    Array("markers")[
        Int64("producer_id", entity="producerId"),
        Array("topics")[
            String("name", entity="topicName"),
            Array("partitions")[
                Int32("partition_index"),
                Int16("error_code"),
            ],
        ],
    ],
]
