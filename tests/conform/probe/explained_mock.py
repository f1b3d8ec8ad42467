"""
Findings of the probe at librdkafka's mock cluster (librdkafka 2.16), with explanations.

A line is the key of a finding, as in a baseline; each was confirmed by hand in the bytes.
"""

from __future__ import annotations

_OF_PARTITION = "responses[].partition_responses[].error_code"

MOCK = {
    "P01|broker||Metadata||Metadata v#: the response #: response at byte #: # bytes are left over "
    "after the body": (
        "The empty tag section at the end of Metadata v9 to v13 is written twice: the frame ends "
        "in 00 00, the second of which is left over. Not so in v8, which has none."
    ),
    "P01|broker||JoinGroup||JoinGroup v#: closed the connection": (
        "JoinGroup v6 is offered; the first flexible version can't be read, and the connection is "
        "closed. The same bytes are answered by Kafka (P38 asks them of both)."
    ),
    "P01|broker||SyncGroup||SyncGroup v#: closed the connection": "SyncGroup v4, likewise.",
    "P01|broker||LeaveGroup||LeaveGroup v#: the response # can't be read: response.members at byte "
    "#: LeaveGroup v#: # bytes expected, # left": (
        "LeaveGroup v3 ends behind the error code: 00 00 00 00 (throttle time), 00 19 (error 25); "
        "the list of members, which v3 brought, is missing."
    ),
    "P01|broker||LeaveGroup||LeaveGroup v#: the response # can't be read: response at byte #: "
    "LeaveGroup v#: # bytes expected, # left": (
        "LeaveGroup v4 likewise: behind 00 19 only 00, the tag section or the list, not both."
    ),
    "P01|broker||Produce||Produce v#: the response # can't be read: "
    "response.responses[#].partition_responses at byte #: Produce v#: count # but # bytes are "
    "left in the message": (
        "Produce v5 has no log_start_offset: index, error, offset and time are 22 bytes and the "
        "throttle time 4, where v5 wants 30 and 4. v6 and later have it."
    ),
    "P01|broker||ShareGroupHeartbeat||ShareGroupHeartbeat v#: the response #: response at byte #: "
    "# bytes are left over after the body": "The tag section is written twice, as in Metadata.",
    "P02|broker||ApiVersions||ApiVersions v#: the response # is not in the format of v#": (
        "The answer is 00 23, 01 00 12 00 00 00 02 00 00 00 00: the count is no int32, as v0 has "
        "it, and as a compact one it is 0 rather than 1, though an entry follows."
    ),
    "P05|broker||||a frame of #,#,#,# bytes: the connection was still open after # s": (
        "Nothing comes back for a size of 80 00 00 00 or 7f ff ff ff, and more is waited for."
    ),
    "P05|broker||||a frame of # bytes: the connection was still open after # s": (
        "Likewise for ff ff ff ff, which is -1."
    ),
    "P06|broker||||a frame of # bytes: the connection was still open after # s": (
        "A frame of 3 bytes, 00 00 00 03 00 03 00, is waited upon for more: headers of less than "
        "8 bytes are not looked at."
    ),
    "P06|broker||||an empty frame: the connection was still open after # s": "Likewise.",
    "P10|broker||Produce||Produce v#: the response # can't be read: "
    "response.responses[#].partition_responses at byte #: Produce v#: count # but # bytes are "
    "left in the message": "Produce v5, as above.",
    "P13|broker||AddOffsetsToTxn|error_code|AddOffsetsToTxn v#: answered UNKNOWN_PRODUCER_ID (#), "
    "not INVALID_PRODUCER_ID_MAPPING": (
        "00 3b (59), where Kafka answers 00 31 (49) for a transactional id that it does not know."
    ),
    "P13|broker||EndTxn|error_code|EndTxn v#: answered UNKNOWN_PRODUCER_ID (#), not "
    "INVALID_PRODUCER_ID_MAPPING": "Likewise.",
    "P18|broker||ApiVersions||ApiVersions v#: the response # can't be read: response.api_keys at "
    "byte #: ApiVersions v#: count # but # bytes are left in the message": (
        "Produce with acks = 0 is answered: the first frame has its correlation id, 00 00 00 01, "
        "and the bytes of a Produce response."
    ),
    "P19|broker||Produce||Produce v# with acks = # to an unknown topic: it is answered": (
        "Likewise."
    ),
    f"P20|broker||Produce|{_OF_PARTITION}|Produce v#: answered NONE (#), not "
    "INVALID_REQUIRED_ACKS": "acks = 2 (00 02) and -2 (ff fe) are answered with offsets.",
    "P21|broker||Produce|responses[].partition_responses[].base_offset|Produce v#: the batch at # "
    "is at # when it is sent again": (
        "Sequences are not looked at: the same bytes, sent again, are stored again at the end."
    ),
    "P21|broker||Fetch||Fetch v#: returns [b#, b#, b#, b#, b#, b#, b#, b#, b#, b#]": (
        "Hence ten records where five were produced."
    ),
    f"P22|broker||Produce|{_OF_PARTITION}|Produce v#: answered NONE (#), not "
    "INVALID_PRODUCER_EPOCH": "Nor are epochs: epoch 0 is stored behind epoch 1.",
    f"P22|broker||Produce|{_OF_PARTITION}|Produce v#: answered NONE (#), not "
    "OUT_OF_ORDER_SEQUENCE_NUMBER": "Sequence 7 is stored behind sequence 0.",
    "P33|broker||ListOffsets|topics[].partitions[].offset|ListOffsets v# for #: offset #, not #": (
        "ListOffsets v7 is offered, and answers ff ff ff ff ff ff ff ff for timestamp -3."
    ),
    "P35|broker||Fetch||Fetch v# with isolation_level #: returns [(#, b#)], not []": (
        "Records of an open transaction are given to who asks for committed ones only."
    ),
    "P35|broker||Fetch|responses[].partitions[].aborted_transactions|Fetch v#: aborted "
    "transactions [], without (#, #)": "The list of aborted transactions is always empty.",
    "P36|broker||EndTxn|error_code|EndTxn v#: answered NONE (#), not INVALID_TXN_STATE": (
        "A transaction to which nothing was added is committed with error 00 00."
    ),
    "P37|broker||EndTxn|error_code|EndTxn v#: answered NONE (#), not INVALID_PRODUCER_EPOCH or "
    "PRODUCER_FENCED": "The epoch before the newest ends a transaction.",
    "P37|broker||Fetch|responses[].partitions[].aborted_transactions|Fetch v#: aborted "
    "transactions [], without (#, #)": "As above.",
    "P46|broker||OffsetFetch||OffsetFetch v#: the response has no "
    "topics[#].partitions[#].error_code": (
        "Null topics (ff ff ff ff), which from v2 on ask for all, are answered with none."
    ),
    "T09|broker||InitProducerId|error_code|InitProducerId v#: answered NONE (#), not "
    "INVALID_TRANSACTION_TIMEOUT": "Timeouts of 7f ff ff ff and 0 ms get a producer id.",
}

KILLED = {
    "P24": (
        "A batch of no bytes (records of size 0) is stored; the next fetch ends the process: "
        "rdbuf.c, assertion r == 0 in rd_slice_init_full."
    ),
    "P41": (
        "ConsumerGroupHeartbeat v1 with topics and a null pattern, as Kafka's own clients write "
        "it, ends the process: rdkafka_mock_cgrp.c, an assertion in validate_subscription."
    ),
}
"""Rules whose probes end the mock cluster, and the process that it is in."""

SLOW = {
    "P12": "Strangers that join are taken, and the next one waits for them to join again.",
    "P30": "A fetch that waits is not woken by a record; fetches at the end wait for all limits.",
    "P32": "Kept; but a fetch of an epoch to come is answered only when its wait is over.",
    "P38": "Joins without an id are taken at once (G01 of the captures too).",
    "P39": "The newest offered version of JoinGroup, v6, can't be read.",
    "P40": "Wishes that Kafka refuses are taken, and the next one waits.",
}
"""Rules that take long to ask there, nearly all of them broken."""
