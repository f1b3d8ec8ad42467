"""Produce requests refused for one partition: the other partitions are not written twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.default_frames import sized
from tests.replay.run.test_runner import Played, answer, at_script, one_after_another
from tests.replay.support.produce_messages import Written, produce_request, produce_response
from tests.replay.support.replay_captures import exchange, saved
from tests.tcp_captures import Wire

NOT_YET = 3
"""UNKNOWN_TOPIC_OR_PARTITION: of a partition that its leader has not heard of."""


def answered(version: int, *partitions: tuple[int, int, int]) -> dict[str, Any]:
    """Partition, error and base offset of each; one topic, by its name."""
    given = [
        {
            "index": index,
            "error_code": error,
            "base_offset": offset,
            "log_append_time_ms": -1,
        }
        for index, error, offset in partitions
    ]
    return {"responses": [{"name": "orders", "partition_responses": given}]}


def played(folder: Path, version: int, *answers: dict[str, Any]) -> Played:
    wire = Wire()
    records = [Written("orders", at, [b"%d" % at]).records() for at in range(2)]
    written = [{"index": at, "records": data} for at, data in enumerate(records)]
    topics = [{"name": "orders", "partition_data": written}]
    taken = answered(version, (0, 0, 0), (1, 0, 10))
    exchange(
        wire.connect().syn(),
        sized(produce_request(version, [], 1, topic_data=topics)),
        sized(produce_response(version, [], 1, **taken)),
    )
    return at_script(saved(folder, wire), {"Produce": one_after_another(*answers)})


def partitions(found: Played) -> list[list[int]]:
    """The partitions in each request."""
    return [
        [each.index for topic in message.body.topic_data for each in topic.partition_data]
        for message in found.requests
        if message.body is not None
    ]


@pytest.mark.parametrize("version", [8, 9])
def test_only_refused_partitions_are_retried(tmp_path: Path, version: int) -> None:
    first = answered(version, (0, 0, 70), (1, NOT_YET, -1))
    again = answered(version, (1, NOT_YET, -1))
    found = played(tmp_path, version, first, again, answered(version, (1, 0, 80)))
    assert partitions(found) == [[0, 1], [1], [1]]
    (outcome,) = found.outcomes
    results = {
        each.index: (each.error_code, each.base_offset)
        for topic in answer(outcome).responses
        for each in topic.partition_responses
    }
    assert results == {0: (0, 70), 1: (0, 80)}


def test_the_offset_of_each_partition_is_learned(tmp_path: Path) -> None:
    first = answered(9, (0, 0, 70), (1, NOT_YET, -1))
    found = played(tmp_path, 9, first, answered(9, (1, 0, 80)))
    assert found.run is not None
    assert found.run.ids is not None
    offsets = found.run.ids.offsets
    assert [offsets.log("orders", at).appended.live_end for at in range(2)] == [71, 81]
    assert not offsets.log("orders", 0).appended.unconfirmed


def test_a_request_refused_as_a_whole_is_retried_as_a_whole(tmp_path: Path) -> None:
    refused = answered(9, (0, NOT_YET, -1), (1, NOT_YET, -1))
    found = played(tmp_path, 9, refused, answered(9, (0, 0, 0), (1, 0, 0)))
    assert partitions(found) == [[0, 1], [0, 1]]
