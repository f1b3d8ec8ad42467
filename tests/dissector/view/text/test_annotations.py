from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.protocol.apis import all_apis
from dissector.protocol.schema import Field
from dissector.view.text.annotations import BY_NAME, BY_OWNER, meaning


@pytest.mark.parametrize(
    ("where", "name", "value", "expected"),
    [
        ("Fetch response", "error_code", 6, "NOT_LEADER_OR_FOLLOWER"),
        ("Fetch response", "error_code", 0, "NONE"),
        ("Metadata response", "topic_error_code", 3, "UNKNOWN_TOPIC_OR_PARTITION"),
        ("", "error_code", 999, "ERROR_999"),
        ("ApiVersions response", "api_key", 1, "Fetch"),
        ("ApiVersions response", "api_key", 1000, "api 1000"),
        ("Produce request", "acks", -1, "all in-sync replicas"),
        ("Produce request", "acks", 1, "the leader"),
        ("Produce request", "acks", 7, ""),
        ("Fetch request", "isolation_level", 1, "READ_COMMITTED"),
        ("ListOffsets request", "timestamp", -2, "earliest"),
        ("ListOffsets request", "timestamp", 1_700_000_000_000, "2023-11-14 22:13:20.000Z"),
        ("ListOffsets response", "timestamp", -1, "none"),
        ("DescribeQuorum response", "last_fetch_timestamp", 0, "1970-01-01 00:00:00.000Z"),
        ("Produce response", "log_append_time_ms", -1, "CreateTime is used"),
        ("Produce response", "throttle_time_ms", 5, ""),
        ("FindCoordinator request", "key_type", 1, "TRANSACTION"),
        ("CreateAcls request", "resource_type", 4, "CLUSTER"),
        ("DescribeConfigs request", "resource_type", 4, "BROKER"),
        ("AlterConfigs request", "resource_type", 2, "TOPIC"),
        ("Metadata response", "leader_id", -1, "none"),
        ("Metadata response", "leader_id", 2, ""),
        ("Metadata response", "topic_authorized_operations", -(2**31), "not requested"),
        ("Metadata response", "topic_authorized_operations", 0b11000, "READ, WRITE"),
        ("", "attributes", 0, "none, CreateTime"),
        ("", "attributes", 0x3B, "lz4, LogAppendTime, transactional, control"),
        ("", "attributes", 7, "codec 7, CreateTime"),
        ("ShareFetch request", "acknowledge_types", 1, "accept"),
        ("ConsumerGroupDescribe response", "member_type", -1, "unknown"),
        ("ConsumerGroupDescribe response", "member_type", 1, "consumer"),
        ("WriteShareGroupState request", "delivery_state", 4, "ARCHIVED"),
        ("WriteShareGroupState request", "delivery_state", 3, ""),
        ("EndTxn request", "committed", True, "commit"),
        ("EndTxn request", "committed", 2, ""),
        ("ConsumerGroupHeartbeat request", "member_epoch", 0, "joins"),
        ("JoinGroup response", "generation_id", -1, "none"),
        ("Produce request", "acks", "x", ""),
        ("Produce request", "acks", None, ""),
    ],
)
def test_meanings_of_values(where: str, name: str, value: Any, expected: str) -> None:
    assert meaning(name, value, where) == expected


def test_every_name_in_the_tables_is_declared() -> None:
    def names(fields: tuple[Field, ...]) -> set[str]:
        return {f.name for f in fields} | {n for f in fields for n in names(f.fields)}

    declared = {"attributes", "base_sequence", "partition_leader_epoch", "request_api_key"}
    declared |= {"timestamp_type"}
    for found in all_apis():
        declared |= names(found.request.fields) | names(found.response.fields)
    assert {*BY_NAME, *(name for _, name in BY_OWNER)} <= declared


@given(st.sampled_from([*BY_NAME, "timestamp", "error_code"]), st.integers(-(2**63), 2**63 - 1))
def test_any_number_has_a_meaning_or_none(name: str, value: int) -> None:
    assert meaning(name, value).isprintable()
