"""Slots of overlapping intervals."""

from __future__ import annotations

import random

import numpy as np

from tests.kernel_modes import both
from timeline.output.perfetto import slots
from timeline.output.perfetto.slots import Slots

mode = both(slots)


def random_intervals(count: int) -> np.ndarray:
    """Return group, begin and end of intervals, sorted by their ends."""
    draw = random.Random(7)
    rows = []
    for _ in range(count):
        begin = draw.randrange(2000)
        rows.append((draw.randrange(20), begin, begin + draw.randrange(40)))
    return np.array(sorted(rows, key=lambda row: row[2]), np.int64).T


def test_intervals_of_a_slot_do_not_overlap_and_slots_are_minimal() -> None:
    group, begin, end = random_intervals(600)
    found = Slots()
    parts = np.array_split(np.arange(len(group)), 7)
    slot = np.concatenate([found.assign(group[at], begin[at], end[at]) for at in parts])
    for number in np.unique(group):
        own = group == number
        for each in np.unique(slot[own]):
            at = np.flatnonzero(own & (slot == each))
            assert (begin[at][1:] >= end[at][:-1]).all()
        most = max(
            int(((begin[own] < time) & (time <= end[own])).sum()) for time in end[own].tolist()
        )
        assert len(np.unique(slot[own])) <= max(most, 1)


def test_number_of_slots_grows() -> None:
    count = 50
    columns = np.zeros(count, np.int64), np.zeros(count, np.int64), np.full(count, 9)
    assert Slots().assign(*columns).tolist() == list(range(count))
