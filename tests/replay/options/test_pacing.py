"""Due times of steps."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from replay.options.pacing import SECOND_NS, Pace

S = SECOND_NS
TIMES = [5 * S, 6 * S, 6 * S, 26 * S]


def test_as_captured_or_faster() -> None:
    assert list(Pace().schedule(TIMES)) == [0, S, S, 21 * S]
    assert list(Pace(speed=2).schedule(TIMES)) == [0, S // 2, S // 2, 21 * S // 2]
    assert list(Pace(speed=0).schedule(TIMES)) == [0, 0, 0, 0]


def test_long_waits_are_shortened() -> None:
    assert list(Pace(max_wait_s=3).schedule(TIMES)) == [0, S, S, 4 * S]


def test_a_rate_spreads_simultaneous_requests() -> None:
    assert list(Pace(speed=0, rate=4).schedule(TIMES)) == [0, S // 4, S // 2, 3 * S // 4]
    assert list(Pace(rate=4).schedule(TIMES)) == [0, S, 5 * S // 4, 85 * S // 4]


@given(st.lists(st.integers(0, 10**12)), st.floats(0.1, 100), st.just(0.0) | st.floats(0.1, 1000))
def test_steps_stay_in_order(times: list[int], speed: float, rate: float) -> None:
    due = list(Pace(speed, rate).schedule(sorted(times)))
    assert due == sorted(due)
    assert due[:1] in ([], [0])


def test_only_speed_max_has_no_due_times() -> None:
    assert Pace().is_timed
    assert Pace(0, 5).is_timed
    assert not Pace(0).is_timed
