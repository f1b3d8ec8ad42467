"""Ids and generations of group members."""

from __future__ import annotations

import pytest

from replay.mapping import member_ids as members_module
from replay.mapping.member_ids import MemberMap


def test_ids_map_both_ways_within_a_group() -> None:
    members = MemberMap()
    members.learn("g", "m", "live")
    assert members.live("g", "m") == "live"
    assert members.captured("g", "live") == "m"
    assert members.live("other", "m") == "m"
    assert members.captured("g", "own") == "own"


def test_empty_ids_are_not_mapped() -> None:
    members = MemberMap()
    members.learn("g", "", "live")
    members.learn("g", "m", "")
    assert members.live("g", "") == ""
    assert members.live("g", "m") == "m"


def test_generations_map_both_ways() -> None:
    members = MemberMap()
    members.learn_generation("g", "m", 4, 1)
    members.learn_generation("g", "m", 5, 3)
    assert [members.live_generation("g", "m", generation) for generation in (4, 5)] == [1, 3]
    assert [members.captured_generation("g", "m", generation) for generation in (1, 3)] == [4, 5]


def test_an_unknown_generation_becomes_the_newest() -> None:
    members = MemberMap()
    members.learn_generation("g", "m", 4, 1)
    members.learn_generation("g", "m", 5, 3)
    assert members.live_generation("g", "m", 9) == 3
    assert members.live_generation("g", "somebody", 4) == 1
    assert members.live_generation("elsewhere", "m", 4) == 4


@pytest.mark.parametrize("generation", [0, -1, -2])
def test_epochs_for_joining_and_leaving_are_not_mapped(generation: int) -> None:
    members = MemberMap()
    members.learn_generation("g", "m", generation, 7)
    members.learn_generation("g", "m", 4, 1)
    assert (
        members.live_generation("g", "m", generation)
        == members.captured_generation("g", "m", generation)
        == generation
    )


def test_old_generations_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(members_module, "MAX_GENERATIONS", 3)
    members = MemberMap()
    for generation in range(1, 9):
        members.learn_generation("g", "m", generation, 10 * generation)
    assert members.live_generation("g", "m", 8) == 80
    known = [each for each in range(1, 9) if members.live_generation("g", "m", each) == 10 * each]
    assert known == [6, 7, 8]


def test_a_join_without_a_captured_response_leads_to_the_next_generation() -> None:
    members = MemberMap()
    members.learn_next_generation("g", "m", 9)
    assert members.live_generation("g", "m", 3) == 3
    members.learn_generation("g", "m", 2, 7)
    members.learn_next_generation("g", "m", 9)
    assert [members.live_generation("g", "m", generation) for generation in (2, 3, 5)] == [7, 9, 9]
    assert members.captured_generation("g", "m", 9) == 3
