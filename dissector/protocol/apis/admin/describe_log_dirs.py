"""
DescribeLogDirs (key 35): describe the log directories of a broker.

Source: Kafka, DescribeLogDirsRequest.json and DescribeLogDirsResponse.json; KIP-113, KIP-827 (v4).
"""

from dissector.protocol.schema import Array, Bool, Int16, Int32, Int64, String, message

DescribeLogDirsRequest = message(35, "0-5", flexible="2+")[
    Array("topics", null="0+")[
        String("topic", key=True, entity="topicName"),
        Array("partitions", of=Int32),
    ],
]

DescribeLogDirsResponse = message(35, "0-5", flexible="2+")[
    Int32("throttle_time_ms"),
    Int16("error_code", "3+", ignorable=True),
    Array("results")[
        Int16("error_code"),
        String("log_dir"),
        Array("topics")[
            String("name", entity="topicName"),
            Array("partitions")[
                Int32("partition_index"),
                Int64("partition_size"),
                Int64("offset_lag"),
                Bool("is_future_key"),
            ],
        ],
        Int64("total_bytes", "4+", default=-1, ignorable=True),
        Int64("usable_bytes", "4+", default=-1, ignorable=True),
        Bool("is_cordoned", "5+", default=False, ignorable=True),
    ],
]
