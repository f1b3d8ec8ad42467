"""Which differences follow from what a capture lacks."""

from __future__ import annotations

import pytest

from dissector.protocol.apis import KEYS
from dissector.protocol.messages import decode_response
from replay.gaps import follow_from_gap
from replay.outcome import Difference
from replay.step import Captured
from replay.world import World
from tests.frames import request, response

LIST = KEYS["ListOffsets"]
DIFFERS = Difference("topics[t].partitions[0].offset", 6, 3)


def asked() -> Captured:
    topics = [{"name": "t", "partitions": [{"partition_index": 0, "timestamp": -1}]}]
    at = {"partition_index": 0, "error_code": 0, "offset": 6, "timestamp": -1}
    told = [{"name": "t", "partitions": [at]}]
    frames = request(LIST, 1, 1, topics=topics)[4:], response(LIST, 1, 1, topics=told)[4:]
    return Captured(0, "", "", LIST, 1, 1, None, *frames, True, 0, 1)


def follows(world: World, *differences: Difference) -> bool:
    captured = asked()
    assert captured.response is not None
    answered = decode_response(captured.response, LIST, 1)
    return follow_from_gap(captured, answered, differences, world)


@pytest.mark.parametrize(("is_partial", "expected"), [(True, True), (False, False)])
def test_a_position_of_which_nothing_is_known(is_partial: bool, expected: bool) -> None:
    world = World()
    world.is_partial = is_partial
    assert follows(world, DIFFERS) is expected


def test_a_position_behind_a_record_that_both_have() -> None:
    world = World()
    world.is_partial = True
    world.offsets.learn("t", 0, 0, 0, 6)
    assert not follows(world, DIFFERS)


def test_another_partition_has_another_reason() -> None:
    world = World()
    world.is_partial = True
    other = Difference("topics[t].partitions[1].offset", 6, 3)
    assert not follows(world, DIFFERS, other)


def test_ends_that_were_guessed() -> None:
    world = World()
    world.is_partial = True
    world.offsets.learn("t", 0, 0, 0, 9)
    marker = Difference("responses[t].partitions[0].records[6].control", "ABORT", "COMMIT")
    assert not follows(world, marker)
    world.guessed_ends = 1
    assert follows(world, marker)
