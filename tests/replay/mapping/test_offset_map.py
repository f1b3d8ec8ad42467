"""Offsets mapped between capture and target."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.mapping import offset_map as offsets_module
from replay.mapping.offset_map import NO_OFFSET, OffsetMap


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(1, 9)), max_size=8))
def test_learned_offsets_map_both_ways(steps: list[tuple[int, int, int]]) -> None:
    offsets = OffsetMap()
    captured = live = 0
    known: list[tuple[int, int]] = []
    for gap, live_gap, count in steps:
        captured, live = captured + gap, live + live_gap
        offsets.learn("t", 0, captured, live, count)
        known += [(captured + i, live + i) for i in range(count)]
        captured, live = captured + count, live + count
    for ours, theirs in known:
        assert offsets.live("t", 0, ours) == (theirs, "translated")
        assert offsets.captured("t", 0, theirs) == ours
        assert offsets.rule("t", 0, ours) == "translated"


@given(st.permutations(list(range(6))))
def test_the_order_of_learning_does_not_matter(order: list[int]) -> None:
    offsets = OffsetMap()
    for block in order:
        offsets.learn("t", 0, 10 * block, 1000 + 20 * block, 10)
    for block in range(6):
        assert offsets.live("t", 0, 10 * block + 3) == (1003 + 20 * block, "translated")
        assert offsets.captured("t", 0, 1003 + 20 * block) == 10 * block + 3


def test_adjacent_offsets_become_one_stretch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offsets_module, "MAX_STRETCHES", 1)
    offsets = OffsetMap()
    for at in range(100):
        offsets.learn("t", 0, at, 50 + at, 1)
    offsets.learn("t", 0, 40, 90, 1)
    for at in (0, 99):
        assert offsets.live("t", 0, at) == (50 + at, "translated")


def test_offsets_between_stretches_are_extrapolated() -> None:
    offsets = OffsetMap()
    offsets.learn("t", 0, 10, 0, 5)
    assert offsets.live("t", 0, 15) == (5, "translated")
    assert offsets.live("t", 0, 17) == (7, "counted")
    assert offsets.rule("t", 0, 17) == "counted"


@pytest.mark.parametrize(("policy", "expected"), [("kept", 3), ("earliest", 20), ("latest", 90)])
def test_unknown_offsets_follow_the_policy(policy: offsets_module.Policy, expected: int) -> None:
    offsets = OffsetMap(policy)
    assert offsets.live("t", 0, 3) == (3, "kept")
    offsets.set_bounds("t", 0, 20, 90)
    assert offsets.live("t", 0, 3) == (expected, policy)
    offsets.learn("t", 0, 100, 50, 1)
    assert offsets.live("t", 0, 3) == (expected, policy)
    assert offsets.live("t", 0, 60) == (10, "counted")


@pytest.mark.parametrize("offset", [-1, -2, NO_OFFSET])
def test_negative_offsets_are_not_mapped(offset: int) -> None:
    offsets = OffsetMap()
    offsets.learn("t", 0, offset, 3, 1)
    offsets.learn("t", 0, 3, offset, 1)
    offsets.learn("t", 0, 3, 9, 1)
    assert offsets.live("t", 0, offset) == (offset, "")
    assert offsets.captured("t", 0, offset) == offset


def test_a_better_position_replaces_one_at_the_same_place() -> None:
    offsets = OffsetMap()
    offsets.learn("t", 0, 10, 5)
    offsets.learn("t", 0, 10, 10, 3)
    assert offsets.live("t", 0, 11) == (11, "translated")


@given(st.permutations(list(range(8))))
def test_neighbours_are_joined_in_any_order(order: list[int]) -> None:
    offsets = OffsetMap()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(offsets_module, "MAX_STRETCHES", 4)
        for at in order:
            offsets.learn("t", 0, at, 50 + at, 1)
        for at in (100, 200, 300):  # with one stretch before them not too many
            offsets.learn("t", 0, at, 50 + 2 * at, 1)
    for at in order:
        assert offsets.live("t", 0, at) == (50 + at, "translated")
        assert offsets.captured("t", 0, 50 + at) == at


def test_records_replace_a_contradictory_position() -> None:
    offsets = OffsetMap()
    offsets.learn("t", 0, 100, 20)
    offsets.learn("t", 0, 90, 90, 20)
    assert offsets.live("t", 0, 100) == (100, "translated")
    assert offsets.live("t", 0, 105) == (105, "translated")


def test_the_oldest_are_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offsets_module, "MAX_STRETCHES", 10)
    offsets = OffsetMap()
    for at in range(0, 100, 2):
        offsets.learn("t", 0, at, 2 * at, 1)
    found = [offsets.live("t", 0, at) for at in range(0, 100, 2)]
    assert sum(rule == "translated" for _, rule in found) <= 10
    assert offsets.live("t", 0, 98) == (196, "translated")


runs = st.tuples(
    st.integers(0, 30), st.integers(0, 30), st.lists(st.integers(1, 4), min_size=1, max_size=4)
)


@given(st.lists(runs, max_size=6))
def test_records_in_a_row_may_be_learned_at_once(learned: list[tuple[int, int, list[int]]]) -> None:
    one_by_one, at_once = OffsetMap(), OffsetMap()
    for captured, live, counts in learned:
        is_last = at_once.log("t", 0).ends_before(captured, live)
        if is_last:
            at_once.learn("t", 0, captured, live, sum(counts))
        for at, count in enumerate(counts):
            before = sum(counts[:at])
            one_by_one.learn("t", 0, captured + before, live + before, count)
            if not is_last:
                at_once.learn("t", 0, captured + before, live + before, count)
    for offset in range(60):
        assert at_once.live("t", 0, offset) == one_by_one.live("t", 0, offset)
        assert at_once.captured("t", 0, offset) == one_by_one.captured("t", 0, offset)


def test_a_position_does_not_replace_records() -> None:
    offsets = OffsetMap()
    offsets.learn("t", 0, 3, 0, 3)
    offsets.learn("t", 0, 0, 0)
    assert [offsets.captured("t", 0, live) for live in range(4)] == [3, 4, 5, 6]
    assert offsets.live("t", 0, 4) == (1, "translated")
