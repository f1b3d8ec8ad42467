"""Ranges of offsets, compared with sets."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from replay.model.offset_ranges import Range, Ranges

ranges = st.tuples(st.integers(0, 40), st.integers(0, 8)).map(lambda x: Range(x[0], x[0] + x[1]))


def offsets(of: Ranges) -> set[int]:
    return {offset for each in of for offset in range(*each)}


@given(st.lists(st.tuples(st.booleans(), ranges), max_size=30), ranges)
def test_ranges_behave_as_a_set_of_offsets(
    changes: list[tuple[bool, Range]], queried: Range
) -> None:
    found, expected = Ranges(), set[int]()
    for is_added, each in changes:
        if is_added:
            found.add(*each)
            expected |= set(range(*each))
        else:
            found.remove(*each)
            expected -= set(range(*each))
        assert offsets(found) == expected
    made = list(found)
    assert all(one.end < other.start for one, other in itertools.pairwise(made))
    assert found.size == len(expected)
    inside, outside = Ranges(found.within(*queried)), Ranges(found.missing(*queried))
    assert offsets(inside) == expected & set(range(*queried))
    assert offsets(outside) == set(range(*queried)) - expected


@given(st.lists(ranges, min_size=1, max_size=20), st.integers(1, 5))
def test_reduced_ranges_cover_all_offsets(given: list[Range], most: int) -> None:
    found = Ranges(given)
    before = offsets(found)
    found.thin_out(most)
    assert len(found) <= most
    assert before <= offsets(found)


def test_a_range_with_its_end_before_its_start_is_empty() -> None:
    assert list(Ranges([Range(0, 10)]).within(6, 4)) == []


def test_a_range_of_any_size_is_unpacked() -> None:
    """Offsets are numbers from the wire: none may become the size of a list."""
    whole = Range(0, 2**62)
    assert [*whole] == [0, 2**62]
    assert whole.size == 2**62
    assert str(Range(5, 6)) == "5"
