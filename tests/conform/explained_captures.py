"""
Findings in the recorded captures, with explanations: errors and warnings, not notes.

A line is the key of a finding without the software. `CLIENTS` is for traffic between Apache Kafka
and clients, with no errors but `FAULTS`; `MOCK` for traffic with librdkafka's mock cluster.
"""

from __future__ import annotations

CLIENTS = {
    "B18|client||Produce|topic_data[].partition_data[].records[].producer_id|"
    "producer id #, epoch #, base sequence #": (
        "aiokafka, kafkajs and sarama write base sequence 0 (kafkajs epoch 0 too) where there is "
        "no producer id; Kafka looks at neither without one."
    ),
    "B22|client||CreateTopics||a topic is named #": (
        "The recorder asks for a bad name on purpose; the answer is INVALID_TOPIC_EXCEPTION."
    ),
    "B22|client||Metadata||a topic is named #": (
        "The recorder asks for a bad name on purpose; kafka-python is given TopicPartitions for an "
        "election of leaders, and asks for the text of one as if it were a topic."
    ),
    "F02|client||AlterUserScramCredentials||bytes left over after the body: #": (
        "librdkafka writes the empty tag section of the request twice: 00 00 at the end."
    ),
    "F02|client||Metadata||bytes left over after the body: #": (
        "librdkafka's DescribeCluster writes the count of topics as an int32, 00 00 00 00, in the "
        "flexible version 13: read as compact it is null, so the broker returns all topics."
    ),
    "G06|client||ConsumerGroupHeartbeat|member_id|no member id, with epoch #": (
        "The sweep of Kafka's classes fills in every field; the answer is INVALID_REQUEST."
    ),
    "G06|client||ConsumerGroupHeartbeat|topic_partitions|"
    "joins without an empty list of partitions": "The sweep, as above.",
    "A01|broker||ShareGroupDescribe|groups[]|# occurs twice in the list": (
        "Kafka 4.0, whose share groups are a preview, answers each group twice: as it is found, "
        "and with GROUP_ID_NOT_FOUND."
    ),
    "H01|client||ShareGroupHeartbeat|member_id|no member id": "The sweep, as above.",
    "H02|client||ShareAcknowledge|share_session_epoch|ShareAcknowledge begins a session": (
        "The sweep, as above; the answer is an error."
    ),
    "H02|client||ShareFetch|share_session_epoch|"
    "the request that begins a session acknowledges records": "The sweep, as above.",
    "S03|client||SaslAuthenticate||no SaslHandshake precedes it": (
        "The sweep, as above, on listeners without a login; the answer is ILLEGAL_SASL_STATE."
    ),
    "R01|client||StreamsGroupHeartbeat|member_id|no member id": "The sweep, as above.",
    "M02|client||Metadata|topics[]|v# requests a topic by its id": "The sweep, as above.",
    "Q01|client||Produce||a request # ms before the end of the throttle time": (
        "librdkafka reports the throttle time to its application and does not wait."
    ),
}

FAULTS = {
    "G05|client||JoinGroup|protocols[].metadata|"
    "ConsumerProtocolSubscription v#: # bytes expected, # left": (
        "kafka-go writes version 1 without the owned partitions that it has."
    ),
}
"""Errors that clients make indeed."""

MOCK = {
    "B18|client||Produce|topic_data[].partition_data[].records[].producer_id|"
    "producer id #, epoch #, base sequence #": "aiokafka, as above.",
    "F02|broker||ApiVersions||bytes left over after the body: #": (
        "The refusal of ApiVersions v3 is of no version: 00 23, then 01 where a compact array of "
        "one says 02, then 00 12 00 00 00 02 for the range, and 00 00 00 00."
    ),
    "F02|broker||Metadata||bytes left over after the body: #": (
        "The mock writes the empty tag section of Metadata v13 twice."
    ),
    "F02|client||Metadata||bytes left over after the body: #": (
        "librdkafka's DescribeCluster, as above."
    ),
    "F05|broker||||a response with correlation id # to a Produce request with acks = #": (
        "The mock answers Produce with acks = 0."
    ),
    "G01|broker||JoinGroup|member_id|a member without an id is accepted at once": (
        "The mock answers JoinGroup v5 with an empty member id, 00 00, with error 00 00 and a "
        "generation, where Kafka answers 00 4f and an id."
    ),
    "G06|broker||ConsumerGroupHeartbeat|member_epoch|a member's epoch is #": (
        "Who joins while others still hold the partitions is answered with member epoch 00 00 00 "
        "00, by which it would join again; Kafka gives it an epoch, and no partitions yet."
    ),
    "M06|broker||Metadata|controller_id|controller # is not one of the brokers [#]": (
        "The mock's controller_id is 00 00 00 00 while its brokers are numbered from 1."
    ),
    "V01|broker||ApiVersions||the error response has version #, not #": (
        "See F02: what it answers fits version 3 rather than 0, and neither to the end."
    ),
}
