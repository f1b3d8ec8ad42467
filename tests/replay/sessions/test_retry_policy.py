"""Conditions of retries."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from dissector.protocol.apis import KEYS
from dissector.protocol.records.layout import CONTROL
from replay.mapping.id_map import IdMap
from replay.sessions.retry_policy import RetryReason, is_in_vain, retry_reason
from tests.replay.support.builders import response, whole
from tests.replay.support.produce_messages import batches


def why(
    api: str, version: int, captured: dict[str, Any], live: dict[str, Any]
) -> RetryReason | None:
    answer = whole(api, version, live, "response")
    return retry_reason(KEYS[api], response(api, version, captured), answer, version, IdMap())


@pytest.mark.parametrize(
    ("api", "version", "captured", "live", "expected"),
    [
        ("Heartbeat", 3, 0, 0, None),
        ("Heartbeat", 3, 0, 25, None),
        ("Heartbeat", 3, 0, 16, RetryReason.MISROUTED),
        ("Heartbeat", 3, 16, 16, None),
        ("Heartbeat", 3, 0, 14, RetryReason.NOT_READY),
        ("Heartbeat", 3, 27, 0, RetryReason.REBALANCE),
        ("OffsetFetch", 5, 0, 3, RetryReason.ABSENT),
        ("OffsetFetch", 5, 3, 3, None),
        ("JoinGroup", 5, 0, 79, RetryReason.MEMBER_ID),
        ("JoinGroup", 5, 79, 79, None),
        ("Fetch", 11, 0, 70, RetryReason.SESSION),
        ("Fetch", 11, 0, 71, RetryReason.SESSION),
    ],
)
def test_retriable_errors(
    api: str, version: int, captured: int, live: int, expected: RetryReason | None
) -> None:
    assert why(api, version, {"error_code": captured}, {"error_code": live}) is expected


def fetched(*records: bytes) -> dict[str, Any]:
    partitions = [{"partition_index": n, "records": each} for n, each in enumerate(records)]
    return {"responses": [{"topic": "orders", "partitions": partitions}]}


def test_missing_records_are_retried() -> None:
    assert why("Fetch", 11, fetched(b"x"), fetched(b"")) is RetryReason.NO_RECORDS
    assert why("Fetch", 11, fetched(b"x"), fetched(b"y")) is None
    assert why("Fetch", 11, fetched(b""), fetched(b"")) is None
    assert why("Fetch", 11, fetched(b"x", b"y"), fetched(b"x")) is RetryReason.SOME_RECORDS
    assert why("Fetch", 11, fetched(b"", b"y"), fetched(b"x")) is RetryReason.NO_RECORDS
    assert why("Fetch", 11, fetched(b"x"), fetched(b"x", b"y")) is None
    marker = batches(0, attributes=CONTROL)
    assert why("Fetch", 11, fetched(b"x"), fetched(marker)) is RetryReason.NO_RECORDS


def test_missing_assignments_are_retried() -> None:
    given: dict[str, Any] = {"assignment": {"topic_partitions": []}}
    assert why("ConsumerGroupHeartbeat", 0, given, {"assignment": None}) is RetryReason.ASSIGNMENT
    assert why("ConsumerGroupHeartbeat", 0, given, given) is None
    some = {"assignment": {"topic_partitions": [{"topic_id": UUID(int=1), "partitions": [0]}]}}
    none = {"assignment": {"topic_partitions": []}}
    assert why("ConsumerGroupHeartbeat", 0, some, none) is RetryReason.ASSIGNMENT
    more = {"assignment": {"topic_partitions": [{"topic_id": UUID(int=1), "partitions": [0, 1]}]}}
    assert why("ConsumerGroupHeartbeat", 0, more, some) is RetryReason.ASSIGNMENT
    assert why("ConsumerGroupHeartbeat", 0, some, more) is None
    assert why("ConsumerGroupHeartbeat", 0, some, some) is None
    assert why("ConsumerGroupHeartbeat", 0, none, some) is None


def test_without_a_captured_response_nothing_is_retried() -> None:
    answer = whole("Heartbeat", 3, {"error_code": 16}, "response")
    assert retry_reason(KEYS["Heartbeat"], None, answer, 3, IdMap()) is None


@pytest.mark.parametrize(
    ("captured", "live", "is_asked_again"),
    [
        ({"active_tasks": []}, {"active_tasks": None}, True),
        ({"active_tasks": None}, {"active_tasks": []}, False),
        ({}, {"status": [{"status_code": 3}]}, True),
        ({"status": [{"status_code": 3}]}, {"status": [{"status_code": 3}]}, False),
    ],
)
def test_missing_streams_tasks_are_retried(
    captured: dict[str, Any], live: dict[str, Any], is_asked_again: bool
) -> None:
    zero: dict[str, Any] = {"active_tasks": None, "status": None}
    zero |= {"standby_tasks": None, "warmup_tasks": None, "partitions_by_user_endpoint": None}
    found = why("StreamsGroupHeartbeat", 0, zero | captured, zero | live)
    assert found is (RetryReason.ASSIGNMENT if is_asked_again else None)


def test_missing_share_group_offsets_are_retried() -> None:
    def offsets(offset: int) -> dict[str, Any]:
        partition = {"partition_index": 0, "start_offset": offset}
        topic = {"topic_name": "orders", "partitions": [partition]}
        return {"groups": [{"group_id": "g", "topics": [topic]}]}

    assert why("DescribeShareGroupOffsets", 0, offsets(0), offsets(-1)) is RetryReason.OFFSETS
    assert why("DescribeShareGroupOffsets", 0, offsets(-1), offsets(0)) is None


def test_missing_settings_are_retried() -> None:
    some: dict[str, Any] = {"resources": [{"resource_type": 2, "acls": []}]}
    assert why("DescribeAcls", 2, some, {"resources": []}) is RetryReason.SETTINGS
    assert why("DescribeAcls", 2, some, some) is None
    entry: dict[str, Any] = {"entity": [], "values": []}
    none: dict[str, Any] = {"entries": None}
    assert why("DescribeClientQuotas", 0, {"entries": [entry]}, none) is RetryReason.SETTINGS


def test_missing_credentials_are_retried() -> None:
    def settings(*errors: int) -> dict[str, Any]:
        users = [{"user": "bob", "error_code": each, "credential_infos": []} for each in errors]
        return {"results": users}

    name = "DescribeUserScramCredentials"
    assert why(name, 0, settings(0), settings(91)) is RetryReason.SETTINGS
    assert why(name, 0, settings(91), settings(91)) is None
    assert why(name, 0, settings(0, 91), settings(91, 91)) is RetryReason.SETTINGS
    assert why(name, 0, settings(0), settings()) is RetryReason.SETTINGS


def test_unknown_tokens_are_retried() -> None:
    for name in ("RenewDelegationToken", "ExpireDelegationToken"):
        assert why(name, 2, {"error_code": 0}, {"error_code": 62}) is RetryReason.SETTINGS
        assert why(name, 2, {"error_code": 62}, {"error_code": 62}) is None
        assert why(name, 2, {"error_code": 0}, {"error_code": 66}) is None


def test_a_missing_topic_beside_a_retriable_error() -> None:
    def commits(*errors: int) -> dict[str, Any]:
        partitions = [{"partition_index": at, "error_code": e} for at, e in enumerate(errors)]
        return {"topics": [{"name": "orders", "partitions": partitions}]}

    assert why("OffsetCommit", 5, commits(0, 0), commits(3, 100)) is RetryReason.ABSENT
    assert why("OffsetCommit", 5, commits(0, 0), commits(3, 14)) is RetryReason.NOT_READY


@pytest.mark.parametrize(
    ("reason", "lacks", "expected"),
    [
        (RetryReason.SETTINGS, "CreateAcls", True),
        (RetryReason.SETTINGS, "DeleteAcls, CreatePartitions", False),
        (RetryReason.ABSENT, "DeleteAcls, CreatePartitions", True),
        (RetryReason.ABSENT, "AlterConfigs", False),
        (RetryReason.OFFSETS, "AlterShareGroupOffsets", True),
        (RetryReason.OFFSETS, "IncrementalAlterConfigs of share.auto.offset.reset", True),
        (RetryReason.NO_RECORDS, "AlterConfigs of share.auto.offset.reset", True),
        (RetryReason.NO_RECORDS, "AlterConfigs of share.session.timeout.ms", False),
        (RetryReason.NOT_READY, "CreatePartitions", False),
        (RetryReason.NO_RECORDS, "CreatePartitions", False),
        (RetryReason.ABSENT, "", False),
    ],
)
def test_no_retries_for_effects_of_omitted_requests(
    reason: RetryReason, lacks: str, expected: bool
) -> None:
    assert is_in_vain(reason, frozenset(lacks.split(", "))) is expected


def test_unsettled_groups_are_retried() -> None:
    def group(state: str) -> dict[str, Any]:
        return {"groups": [{"group_id": "g", "group_state": state, "members": []}]}

    for state, expected in [("Assigning", RetryReason.STABLE_GROUP), ("Empty", None)]:
        assert why("ConsumerGroupDescribe", 1, group("Stable"), group(state)) is expected
    assert why("ShareGroupDescribe", 1, group("Reconciling"), group("Assigning")) is None


def test_a_reassignment_that_the_capture_shows_as_done_is_awaited() -> None:
    moving = {"topics": [{"name": "t", "partitions": []}]}
    done: dict[str, Any] = {"topics": []}
    assert why("ListPartitionReassignments", 0, done, moving) is RetryReason.NOT_READY
    assert why("ListPartitionReassignments", 0, moving, done) is None
    assert why("ListPartitionReassignments", 0, moving, moving) is None


@pytest.mark.parametrize("is_partial", [False, True])
def test_an_unknown_offset_is_awaited_in_a_capture_from_the_middle(is_partial: bool) -> None:
    ids = IdMap()
    ids.is_partial = is_partial
    live = fetched(b"x")
    live["responses"][0]["partitions"][0] |= {"error_code": 1, "records": b""}
    captured = response("Fetch", 11, fetched(b"x"))
    body = whole("Fetch", 11, live, "response")
    found = retry_reason(KEYS["Fetch"], captured, body, 11, ids)
    assert found is (RetryReason.NO_RECORDS if is_partial else None)
