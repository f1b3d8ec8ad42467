"""
Which versions of which APIs the brokers of each Kafka release offer; made by `tools.release_table`.

A range holds from the release that it stands behind until the next one that is named for its API;
`-` means that the API is not offered any more. Of releases that had both, this is what brokers with
ZooKeeper offered.
"""

RELEASES = (
    "0.8.0",
    "0.8.1",
    "0.8.2",
    "0.9",
    "0.10.0",
    "0.10.1",
    "0.10.2",
    "0.11",
    "1.0",
    "1.1",
    "2.0",
    "2.1",
    "2.2",
    "2.3",
    "2.4",
    "2.5",
    "2.6",
    "2.7",
    "2.8",
    "3.0",
    "3.1",
    "3.2",
    "3.3",
    "3.4",
    "3.5",
    "3.6",
    "3.7",
    "3.8",
    "3.9",
    "4.0",
    "4.1",
    "4.2",
    "4.3",
    "4.4",
)
"""From old to new."""

RANGES = {
    # Produce
    0: "0.8.0 0-0, 0.9 0-1, 0.10.0 0-2, 0.11 0-3, 1.0 0-5, 2.0 0-6, "
    "2.1 0-7, 2.4 0-8, 2.8 0-9, 3.7 0-10, 3.8 0-11, 4.0 0-12, 4.1 0-13",
    # Fetch
    1: "0.8.0 0-0, 0.9 0-1, 0.10.0 0-2, 0.10.1 0-3, 0.11 0-5, 1.0 0-6, 1.1 0-7, 2.0 0-8, "
    "2.1 0-10, 2.3 0-11, 2.7 0-12, 3.1 0-13, 3.5 0-15, 3.7 0-16, 3.9 0-17, 4.0 4-17, 4.1 4-18",
    # ListOffsets
    2: "0.8.0 0-0, 0.10.1 0-1, 0.11 0-2, 2.0 0-3, 2.1 0-4, 2.2 0-5, "
    "2.8 0-6, 3.0 0-7, 3.5 0-8, 3.9 0-9, 4.0 1-10, 4.2 1-11",
    # Metadata
    3: "0.8.0 0-0, 0.10.0 0-1, 0.10.1 0-2, 0.11 0-4, 1.0 0-5, 2.0 0-6, "
    "2.1 0-7, 2.3 0-8, 2.4 0-9, 2.8 0-11, 3.1 0-12, 4.0 0-13",
    # LeaderAndIsr
    4: "0.10.0 0-0, 1.0 0-1, 2.2 0-2, 2.4 0-4, 2.8 0-5, 3.2 0-6, 3.4 0-7, 4.0 -",
    # StopReplica
    5: "0.10.0 0-0, 2.2 0-1, 2.4 0-2, 2.6 0-3, 3.4 0-4, 4.0 -",
    # UpdateMetadata
    6: "0.10.0 0-2, 0.10.2 0-3, 1.0 0-4, 2.2 0-5, 2.4 0-6, 2.8 0-7, 3.4 0-8, 4.0 -",
    # ControlledShutdown
    7: "0.10.0 1-1, 1.0 0-1, 2.2 0-2, 2.4 0-3, 4.0 -",
    # OffsetCommit
    8: "0.8.1 0-0, 0.8.2 0-1, 0.9 0-2, 0.11 0-3, 2.0 0-4, "
    "2.1 0-6, 2.3 0-7, 2.4 0-8, 3.7 0-9, 4.0 2-9, 4.2 2-10",
    # OffsetFetch
    9: "0.8.1 0-0, 0.8.2 0-1, 0.10.2 0-2, 0.11 0-3, 2.0 0-4, 2.1 0-5, "
    "2.4 0-6, 2.5 0-7, 3.0 0-8, 3.7 0-9, 4.0 1-9, 4.2 1-10",
    # FindCoordinator
    10: "0.8.2 0-0, 0.11 0-1, 2.0 0-2, 2.4 0-3, 3.0 0-4, 3.8 0-5, 3.9 0-6",
    # JoinGroup
    11: "0.9 0-0, 0.10.1 0-1, 0.11 0-2, 2.0 0-3, 2.2 0-4, "
    "2.3 0-5, 2.4 0-6, 2.5 0-7, 3.2 0-9, 4.0 2-9, 4.1 0-9",
    # Heartbeat
    12: "0.9 0-0, 0.11 0-1, 2.0 0-2, 2.3 0-3, 2.4 0-4",
    # LeaveGroup
    13: "0.9 0-0, 0.11 0-1, 2.0 0-2, 2.4 0-4, 3.2 0-5",
    # SyncGroup
    14: "0.9 0-0, 0.11 0-1, 2.0 0-2, 2.3 0-3, 2.4 0-4, 2.5 0-5",
    # DescribeGroups
    15: "0.9 0-0, 0.11 0-1, 2.0 0-2, 2.3 0-3, 2.4 0-5, 4.0 0-6",
    # ListGroups
    16: "0.9 0-0, 0.11 0-1, 2.0 0-2, 2.4 0-3, 2.6 0-4, 3.8 0-5",
    # SaslHandshake
    17: "0.10.0 0-0, 1.0 0-1",
    # ApiVersions
    18: "0.10.0 0-0, 0.11 0-1, 2.0 0-2, 2.4 0-3, 3.9 0-4, 4.4 0-5",
    # CreateTopics
    19: "0.10.1 0-0, 0.10.2 0-1, 0.11 0-2, 2.0 0-3, 2.4 0-5, 2.7 0-6, 2.8 0-7, 4.0 2-7",
    # DeleteTopics
    20: "0.10.1 0-0, 0.11 0-1, 2.0 0-2, 2.1 0-3, 2.4 0-4, 2.7 0-5, 2.8 0-6, 4.0 1-6",
    # DeleteRecords
    21: "0.11 0-0, 2.0 0-1, 2.6 0-2",
    # InitProducerId
    22: "0.11 0-0, 2.0 0-1, 2.4 0-2, 2.5 0-3, 2.7 0-4, 3.8 0-5",
    # OffsetForLeaderEpoch
    23: "0.11 0-0, 2.0 0-1, 2.1 0-2, 2.3 0-3, 2.8 0-4, 4.0 2-4",
    # AddPartitionsToTxn
    24: "0.11 0-0, 2.0 0-1, 2.7 0-2, 2.8 0-3, 3.6 0-4, 3.8 0-5",
    # AddOffsetsToTxn
    25: "0.11 0-0, 2.0 0-1, 2.7 0-2, 2.8 0-3, 3.8 0-4",
    # EndTxn
    26: "0.11 0-0, 2.0 0-1, 2.7 0-2, 2.8 0-3, 3.8 0-4, 4.0 0-5",
    # WriteTxnMarkers
    27: "0.11 0-0, 2.8 0-1, 4.0 1-1, 4.2 1-2",
    # TxnOffsetCommit
    28: "0.11 0-0, 2.0 0-1, 2.1 0-2, 2.5 0-3, 3.8 0-4, 4.0 0-5, 4.4 0-6",
    # DescribeAcls
    29: "0.11 0-0, 2.0 0-1, 2.5 0-2, 3.3 0-3, 4.0 1-3",
    # CreateAcls
    30: "0.11 0-0, 2.0 0-1, 2.5 0-2, 3.3 0-3, 4.0 1-3",
    # DeleteAcls
    31: "0.11 0-0, 2.0 0-1, 2.5 0-2, 3.3 0-3, 4.0 1-3",
    # DescribeConfigs
    32: "0.11 0-0, 1.1 0-1, 2.0 0-2, 2.6 0-3, 2.8 0-4, 4.0 1-4",
    # AlterConfigs
    33: "0.11 0-0, 2.0 0-1, 2.8 0-2",
    # AlterReplicaLogDirs
    34: "1.0 0-0, 2.0 0-1, 2.8 0-2, 4.0 1-2",
    # DescribeLogDirs
    35: "1.0 0-0, 2.0 0-1, 2.6 0-2, 3.2 0-3, 3.3 0-4, 4.0 1-4, 4.3 1-5",
    # SaslAuthenticate
    36: "1.0 0-0, 2.2 0-1, 2.5 0-2",
    # CreatePartitions
    37: "1.0 0-0, 2.0 0-1, 2.5 0-2, 2.7 0-3",
    # CreateDelegationToken
    38: "1.1 0-0, 2.0 0-1, 2.4 0-2, 3.3 0-3, 4.0 1-3",
    # RenewDelegationToken
    39: "1.1 0-0, 2.0 0-1, 2.5 0-2, 4.0 1-2",
    # ExpireDelegationToken
    40: "1.1 0-0, 2.0 0-1, 2.5 0-2, 4.0 1-2",
    # DescribeDelegationToken
    41: "1.1 0-0, 2.0 0-1, 2.5 0-2, 3.3 0-3, 4.0 1-3",
    # DeleteGroups
    42: "1.1 0-0, 2.0 0-1, 2.4 0-2, 4.4 0-3",
    # ElectLeaders
    43: "2.2 0-0, 2.4 0-2",
    # IncrementalAlterConfigs
    44: "2.3 0-0, 2.4 0-1",
    # AlterPartitionReassignments
    45: "2.4 0-0, 4.1 0-1",
    # ListPartitionReassignments
    46: "2.4 0-0",
    # OffsetDelete
    47: "2.4 0-0",
    # DescribeClientQuotas
    48: "2.6 0-0, 2.8 0-1",
    # AlterClientQuotas
    49: "2.6 0-0, 2.8 0-1",
    # DescribeUserScramCredentials
    50: "2.7 0-0",
    # AlterUserScramCredentials
    51: "2.7 0-0",
    # DescribeQuorum
    55: "4.0 0-2",
    # AlterPartition
    56: "2.7 0-0, 3.2 0-1, 3.3 0-2, 3.5 0-3, 4.0 -",
    # UpdateFeatures
    57: "2.7 0-0, 3.3 0-1, 4.0 0-2",
    # Envelope
    58: "3.4 0-0, 4.0 -",
    # DescribeCluster
    60: "2.8 0-0, 3.7 0-1, 4.0 0-2",
    # DescribeProducers
    61: "2.8 0-0",
    # UnregisterBroker
    64: "4.0 0-0",
    # DescribeTransactions
    65: "3.0 0-0",
    # ListTransactions
    66: "3.0 0-0, 3.8 0-1, 4.1 0-2",
    # AllocateProducerIds
    67: "3.0 0-0, 4.0 -",
    # ConsumerGroupHeartbeat
    68: "3.7 0-0, 4.0 0-1",
    # ConsumerGroupDescribe
    69: "3.8 0-0, 4.0 0-1",
    # GetTelemetrySubscriptions
    71: "4.4 0-0",
    # PushTelemetry
    72: "4.4 0-0",
    # ListConfigResources
    74: "4.0 0-0, 4.1 0-1",
    # DescribeTopicPartitions
    75: "4.0 0-0",
    # ShareGroupHeartbeat
    76: "4.1 1-1",
    # ShareGroupDescribe
    77: "4.1 1-1",
    # ShareFetch
    78: "4.1 1-1, 4.2 1-2",
    # ShareAcknowledge
    79: "4.1 1-1, 4.2 1-2",
    # AddRaftVoter
    80: "4.0 0-0, 4.2 0-1",
    # RemoveRaftVoter
    81: "4.0 0-0",
    # InitializeShareGroupState
    83: "4.1 0-0",
    # ReadShareGroupState
    84: "4.1 0-0",
    # WriteShareGroupState
    85: "4.1 0-0, 4.2 0-1",
    # DeleteShareGroupState
    86: "4.1 0-0",
    # ReadShareGroupStateSummary
    87: "4.1 0-0, 4.2 0-1",
    # StreamsGroupHeartbeat
    88: "4.2 0-0, 4.4 0-1",
    # StreamsGroupDescribe
    89: "4.2 0-0, 4.4 0-1",
    # DescribeShareGroupOffsets
    90: "4.1 0-0, 4.2 0-1",
    # AlterShareGroupOffsets
    91: "4.1 0-0",
    # DeleteShareGroupOffsets
    92: "4.1 0-0",
    # StreamsGroupTopologyDescriptionUpdate
    93: "4.4 0-0",
    # UnregisterController
    94: "4.4 0-0",
}
"""API key -> release and range, over and over."""
