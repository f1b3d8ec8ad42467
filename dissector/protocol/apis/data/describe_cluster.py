"""
DescribeCluster (key 60): describe the cluster: id, controller, brokers.

Source: Kafka, DescribeClusterRequest.json and DescribeClusterResponse.json; KIP-700, KIP-919 (v1),
KIP-1073 (v2).
"""

from dissector.protocol.schema import Array, Bool, Int8, Int16, Int32, String, message

DescribeClusterRequest = message(60, "0-2", flexible="0+")[
    Bool("include_cluster_authorized_operations"),
    Int8("endpoint_type", "1+", default=1),
    Bool("include_fenced_brokers", "2+"),
]

DescribeClusterResponse = message(60, "0-2", flexible="0+")[
    Int32("throttle_time_ms"),
    Int16("error_code"),
    String("error_message", null="0+", default=None),
    Int8("endpoint_type", "1+", default=1),
    String("cluster_id"),
    Int32("controller_id", default=-1, entity="brokerId"),
    Array("brokers")[
        Int32("broker_id", key=True, entity="brokerId"),
        String("host"),
        Int32("port"),
        String("rack", null="0+", default=None),
        Bool("is_fenced", "2+"),
    ],
    Int32("cluster_authorized_operations", default=-2147483648),
]
