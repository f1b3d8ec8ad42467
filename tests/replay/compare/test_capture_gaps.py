"""Differences due to gaps in a capture."""

from __future__ import annotations

from typing import Any

import pytest

from dissector.engine.exchanges.captured_exchange import CapturedExchange
from dissector.protocol.apis import KEYS
from dissector.protocol.messages import decode_response
from replay.compare.capture_gaps import follow_from_gap
from replay.mapping.id_map import IdMap
from replay.model.outcome import Difference
from tests.default_frames import request, response

LIST, COMMITTED, FETCH = KEYS["ListOffsets"], KEYS["OffsetFetch"], KEYS["Fetch"]
JOIN = KEYS["JoinGroup"]
DIFFERS = Difference("topics[t].partitions[0].offset", 6, 3)


def listed_offset() -> CapturedExchange:
    topics = [{"name": "t", "partitions": [{"partition_index": 0, "timestamp": -1}]}]
    at = {"partition_index": 0, "error_code": 0, "offset": 6, "timestamp": -1}
    topics_listed = [{"name": "t", "partitions": [at]}]
    frames = request(LIST, 1, 1, topics=topics)[4:], response(LIST, 1, 1, topics=topics_listed)[4:]
    return CapturedExchange(0, "", "", LIST, 1, 1, None, *frames, True, 0, 1)


def follows(ids: IdMap, *differences: Difference) -> bool:
    return follow(listed_offset(), ids, *differences)


def follow(captured: CapturedExchange, ids: IdMap, *differences: Difference) -> bool:
    assert captured.response is not None
    answered = decode_response(captured.response, captured.api_key, captured.api_version)
    return follow_from_gap(captured, answered, differences, ids)


def committed(version: int) -> CapturedExchange:
    """A response to OffsetFetch with the committed offset 2."""
    partition = {"partition_index": 0, "committed_offset": 2, "metadata": "", "error_code": 0}
    topics = [{"name": "t", "partitions": [partition]}]
    wanted = [{"name": "t", "partition_indexes": [0]}]
    if version >= 8:
        request_body: dict[str, Any] = {"groups": [{"group_id": "g", "topics": wanted}]}
        response_body: dict[str, Any] = {
            "groups": [{"group_id": "g", "topics": topics, "error_code": 0}]
        }
    else:
        request_body, response_body = (
            {"group_id": "g", "topics": wanted},
            {"topics": topics, "error_code": 0},
        )
    frames = (
        request(COMMITTED, version, 1, **request_body)[4:],
        response(COMMITTED, version, 1, **response_body)[4:],
    )
    return CapturedExchange(0, "", "", COMMITTED, version, 1, None, *frames, True, 0, 1)


@pytest.mark.parametrize(("version", "path"), [(5, ""), (8, "groups[g].")])
def test_an_offset_committed_before_the_capture_may_differ(version: int, path: str) -> None:
    ids = IdMap()
    ids.is_partial = True
    ids.offsets.learn("t", 0, 0, 0, 6)
    differs = Difference(f"{path}topics[t].partitions[0].committed_offset", 2, -1)
    assert follow(committed(version), ids, differs)
    ids.committed_offsets["g", "t", 0] = 1, 1
    assert not follow(committed(version), ids, differs)


@pytest.mark.parametrize(("error", "expected"), [(1, True), (6, False)])
def test_an_out_of_range_error_in_a_fetch_session(error: int, expected: bool) -> None:
    ids = IdMap()
    ids.is_partial = True
    frames = request(FETCH, 11, 1)[4:], response(FETCH, 11, 1, responses=[])[4:]
    captured = CapturedExchange(0, "", "", FETCH, 11, 1, None, *frames, True, 0, 1)
    partition = {"partition_index": 0, "error_code": error}
    of_topic = Difference("responses[t]", None, {"topic": "t", "partitions": [partition]})
    of_partition = Difference("responses[t].partitions[0]", None, partition)
    of_error = Difference("responses[t].partitions[1].error_code", 0, error, is_error=True)
    assert follow(captured, ids, of_topic, of_partition, of_error) is expected


@pytest.mark.parametrize(("is_partial", "expected"), [(True, True), (False, False)])
def test_a_difference_at_an_unknown_position_is_due_to_the_gap(
    is_partial: bool, expected: bool
) -> None:
    ids = IdMap()
    ids.is_partial = is_partial
    assert follows(ids, DIFFERS) is expected


def test_a_difference_behind_a_common_record_is_no_gap() -> None:
    ids = IdMap()
    ids.is_partial = True
    ids.offsets.learn("t", 0, 0, 0, 6)
    assert not follows(ids, DIFFERS)


def test_a_gap_in_another_partition_explains_nothing() -> None:
    ids = IdMap()
    ids.is_partial = True
    other = Difference("topics[t].partitions[1].offset", 6, 3)
    assert not follows(ids, DIFFERS, other)


def test_control_records_may_differ_after_synthesised_commits() -> None:
    ids = IdMap()
    ids.is_partial = True
    ids.offsets.learn("t", 0, 0, 0, 9)
    marker = Difference("responses[t].partitions[0].records[6].control", "ABORT", "COMMIT")
    assert not follows(ids, marker)
    ids.synthesised_commits = 1
    assert follows(ids, marker)


@pytest.mark.parametrize("partitions", [[0, 1], [], None])
def test_partitions_may_be_numbers(partitions: list[int] | None) -> None:
    ids = IdMap()
    ids.is_partial = True
    live = {"topic_id": 1, "partitions": partitions}
    assert not follows(ids, Difference("assignment.topic_partitions[t]", None, live))


@pytest.mark.parametrize(
    ("group", "difference", "expected"),
    [
        ("g", Difference("error_code", 0, 27, is_error=True), True),
        ("g", Difference("error_code", 27, 0, is_error=True), True),
        ("g", Difference("error_code", 0, 3, is_error=True), False),
        ("g", Difference("members[0].member_id", "a", "b"), True),
        ("g", Difference("protocol_name", "a", "b"), False),
        ("other", Difference("error_code", 0, 27, is_error=True), False),
    ],
)
def test_members_without_a_captured_join_explain_differences_of_members(
    group: str, difference: Difference, expected: bool
) -> None:
    ids = IdMap()
    ids.is_partial = True
    ids.uncaptured_members = {(group, "m")}
    frames = (
        request(JOIN, 5, 1, group_id="g", member_id="n")[4:],
        response(JOIN, 5, 1)[4:],
    )
    captured = CapturedExchange(0, "", "", JOIN, 5, 1, None, *frames, True, 0, 1)
    assert follow(captured, ids, difference) is expected
