"""The order of steps with overlapping requests."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.order.service_order import service_order

NONE = -1


def ordered(times: list[tuple[int, int, int]], *served: list[int]) -> list[int]:
    """Order exchanges, given as times of request and response, and connection."""
    request_ns, response_ns, connection = (
        np.array(each, np.int64) for each in zip(*times, strict=True)
    )
    found = service_order(
        request_ns, response_ns, connection, [np.array(each, np.int64) for each in served]
    )
    return found.tolist()


def test_requests_keep_their_captured_order() -> None:
    assert ordered([(5, 9, 0), (0, 3, 1), (4, NONE, 0)]) == [1, 2, 0]
    assert ordered([(0, 9, 0), (1, 8, 1)], [0, 1]) == [0, 1]


@pytest.mark.parametrize(("answered", "order"), [(9, [1, 0, 2]), (NONE, [1, 0, 2]), (1, [0, 1, 2])])
def test_requests_are_ordered_as_the_log_shows(answered: int, order: list[int]) -> None:
    assert ordered([(0, answered, 0), (2, 8, 1), (10, 11, 2)], [1, 0]) == order


def test_later_requests_of_the_connection_move_too() -> None:
    times = [(0, 20, 0), (1, 21, 0), (2, 8, 1), (3, 9, 2)]
    assert ordered(times, [2, 0]) == [2, 0, 1, 3]
    assert ordered(times, [2, 0], [3, 1]) == [2, 0, 3, 1]


def test_contradictory_logs_still_give_an_order() -> None:
    times = [(0, 20, 0), (1, 21, 1)]
    assert sorted(ordered(times, [0, 1], [1, 0])) == [0, 1]


@given(st.data())
def test_requests_of_a_connection_keep_their_order(data: st.DataObject) -> None:
    spans = st.tuples(st.integers(0, 30), st.integers(1, 20), st.integers(0, 3))
    drawn = data.draw(st.lists(spans, min_size=1, max_size=12))
    times = [(begun, begun + took, connection) for begun, took, connection in drawn]
    numbers = st.permutations(range(len(times)))
    served = data.draw(st.lists(numbers, max_size=3))
    order = ordered(times, *served)
    at = {number: step for step, number in enumerate(order)}
    assert sorted(order) == list(range(len(times)))
    for one, (begun, _, connection) in enumerate(times):
        for other, (begun_later, _, connection_of_other) in enumerate(times):
            if connection == connection_of_other and (begun, one) < (begun_later, other):
                assert at[one] < at[other]
