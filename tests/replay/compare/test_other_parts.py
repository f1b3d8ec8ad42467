"""Differences due to changes by other parts of a capture."""

from __future__ import annotations

from typing import Any

import pytest

from dissector.engine.exchanges.captured_exchange import CapturedExchange
from dissector.protocol.error_codes import error_code
from dissector.protocol.messages import decode_response
from replay.compare.other_parts import follow_from_other_parts
from replay.compare.record_diff import RETURNED_TWICE
from replay.mapping.id_map import IdMap
from replay.model.outcome import Difference
from replay.order.read_write_sets import GROUPS, TOPICS, Resource
from tests.replay.support.outcomes import outcome
from tests.replay.support.reports import produced

RECORDS = ("partition", "t", 0)


def _follows(
    captured: CapturedExchange,
    foreign: set[Resource],
    *differences: Difference,
    ids: IdMap | None = None,
) -> bool:
    ids = ids or IdMap()
    ids.foreign = frozenset(foreign)
    assert captured.response is not None
    response = decode_response(captured.response, captured.api_key, captured.api_version)
    return follow_from_other_parts(captured, response, differences, ids)


def _exchange(name: str, version: int, response: Any, request: Any) -> CapturedExchange:
    return outcome(name, version, response, None, request=request).step.captured


def _fetch() -> CapturedExchange:
    partition = {"partition": 0, "fetch_offset": 5, "partition_max_bytes": 1}
    returned = {"partition_index": 0, "high_watermark": 9}
    return _exchange(
        "Fetch",
        4,
        {"responses": [{"topic": "t", "partitions": [returned]}]},
        {"topics": [{"topic": "t", "partitions": [partition]}]},
    )


def test_records_of_a_shared_log_may_differ() -> None:
    records = Difference("responses[t].partitions[0].records", "a", "b")
    elsewhere = Difference("responses[t].partitions[1].records", "a", "b")
    whole = Difference("responses[t]", {}, None)
    assert _follows(_fetch(), {RECORDS}, records, whole)
    assert not _follows(_fetch(), {RECORDS}, records, elsewhere)
    assert not _follows(_fetch(), {("partition", "u", 0)}, records)
    assert not _follows(_fetch(), set(), records)


def test_a_contradictory_response_is_a_difference() -> None:
    path = "responses[t].partitions[0]"
    records = Difference(f"{path}.records[7].value", "a", "b")
    time = Difference(f"{path}.records[7].timestamp_ms", 1, 2)
    assert _follows(_fetch(), {RECORDS}, records, time)
    assert not _follows(_fetch(), {RECORDS}, records, Difference(f"{path}.high_watermark", 9, 0))
    twice = Difference(f"{path}.records[7 to 8]", "2 records", f"2 more, {RETURNED_TWICE}")
    assert not _follows(_fetch(), {RECORDS}, twice)


def test_only_an_own_record_has_its_timestamp() -> None:
    ids = IdMap()
    ids.offsets.log("t", 0).learn_appended(7, 17, 1, 3)
    path = "responses[t].partitions[0].records"
    own, other = (Difference(f"{path}[{at}].timestamp_ms", 1, 2) for at in (7, 8))
    assert _follows(_fetch(), {RECORDS}, other, ids=ids)
    assert not _follows(_fetch(), {RECORDS}, other, own, ids=ids)
    changed = Difference(f"{path}[7].value", "a", "b")
    assert _follows(_fetch(), {RECORDS}, own, changed, ids=ids)
    kind = Difference(f"{path}[8].timestamp_type", "CreateTime", "LogAppendTime")
    assert not _follows(_fetch(), {RECORDS}, kind, ids=ids)


def test_only_the_offset_of_a_produce_response_may_differ() -> None:
    partition = {"index": 0, "records": b""}
    topics = [{"name": "t", "partition_data": [partition]}]
    captured = _exchange("Produce", 7, produced(topic="t"), {"topic_data": topics})
    path = "responses[t].partition_responses[0]"
    assert _follows(captured, {RECORDS}, Difference(f"{path}.base_offset", 1, 2))
    assert not _follows(captured, {RECORDS}, Difference(f"{path}.error_code", 0, 3, is_error=True))
    assert not _follows(captured, {RECORDS}, Difference(f"{path}.log_append_time_ms", 1, -1))


@pytest.mark.parametrize(
    ("error", "follows"), [("UNKNOWN_TOPIC_OR_PARTITION", True), ("CORRUPT_MESSAGE", False)]
)
def test_a_topic_created_by_others_may_exist_sooner_or_later(error: str, follows: bool) -> None:
    partition = {"partition_index": 0, "timestamp": -1}
    returned = {"partition_index": 0}
    captured = _exchange(
        "ListOffsets",
        1,
        {"topics": [{"name": "t", "partitions": [returned]}]},
        {"topics": [{"name": "t", "partitions": [partition]}]},
    )
    path = "topics[t].partitions[0].error_code"
    difference = Difference(path, 0, error_code(error), is_error=True)
    assert _follows(captured, {("topic", "t")}, difference) is follows


def test_lists_of_resources_changed_by_others_may_differ() -> None:
    every = Difference("topics[u]", None, {})
    listing = _exchange("Metadata", 1, {"topics": []}, {"topics": None})
    assert _follows(listing, {TOPICS}, every)
    named = _exchange("Metadata", 1, {"topics": []}, {"topics": [{"name": "t"}]})
    assert not _follows(named, {TOPICS}, every)
    groups = _exchange("ListGroups", 1, {"groups": []}, {})
    assert _follows(groups, {GROUPS}, Difference("groups[g]", None, {}))


def test_own_members_are_judged_beside_groups_of_others() -> None:
    beat = _exchange("Heartbeat", 1, {}, {"group_id": "g", "member_id": "m"})
    error = Difference("error_code", 0, error_code("UNKNOWN_MEMBER_ID"), is_error=True)
    assert not _follows(beat, {GROUPS, ("group", "other")}, error)
    join = _exchange("JoinGroup", 2, {"generation_id": 1}, {"group_id": "g"})
    assert not _follows(join, {GROUPS}, Difference("protocol_name", "a", "b"))
