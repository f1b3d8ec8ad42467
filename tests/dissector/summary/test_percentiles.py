from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.summary import percentiles as module
from dissector.summary.percentiles import Latencies

PARTS = st.lists(st.lists(st.integers(-(10**6), 10**15) | st.integers(0, 5000), max_size=30))


def filled(parts: list[list[int]]) -> Latencies:
    out = Latencies()
    for part in parts:
        out.add(np.array(part, np.int64))
    return out


def nearest_rank(values: list[int], percent: int) -> int:
    """Return the percentile by the nearest-rank method."""
    return next(v for v in values if 100 * sum(w <= v for w in values) >= percent * len(values))


@given(PARTS, st.integers(1, 100))
def test_few_values_are_exact(parts: list[list[int]], percent: int) -> None:
    values = sorted(value for part in parts for value in part)
    found = filled(parts)
    assert found.count == len(values)
    if values:
        assert (found.min_ns, found.max_ns) == (values[0], values[-1])
        assert found.percentile(percent) == nearest_rank(values, percent)


def assert_near(found: Latencies, values: list[int], percent: int) -> None:
    """Compare with the sorted values: the ends exactly, a percentile to half a thousandth."""
    assert (found.min_ns, found.max_ns) == (values[0], values[-1])
    exact = nearest_rank(values, percent)
    if exact >= 0:
        assert abs(found.percentile(percent) - exact) <= exact / 2000


@given(PARTS, st.integers(1, 100))
def test_many_values_are_exact_to_half_a_thousandth(parts: list[list[int]], percent: int) -> None:
    values = sorted(value for part in parts for value in part)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MAX_EXACT_VALUES", 3)
        found = filled(parts)
        assert found.count == len(values)
        if not values:
            return
        assert_near(found, values, percent)
        exact = nearest_rank(values, percent)
        assert exact >= 0 or exact >= found.percentile(percent)


def test_memory_is_bounded() -> None:
    found = Latencies()
    for _ in range(20):
        found.add(np.arange(0, 2**40, 2**25, dtype=np.int64))
    assert found.count == 20 * 2**15
    assert found.buckets is not None
    assert found.exact_values == []
    assert len(found.buckets) < 70_000


@given(PARTS, PARTS, st.integers(1, 100))
def test_histograms_add_up(parts: list[list[int]], others: list[list[int]], percent: int) -> None:
    """With exact durations and with counted ones."""
    values = sorted(value for part in (*parts, *others) for value in part)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MAX_EXACT_VALUES", 40)
        found = Latencies()
        for each in (filled(parts), filled(others)):
            before = each.percentile(percent) if each.count else None
            histogram = each.histogram()
            if histogram is not None:
                found.add_histogram(histogram)
            assert (each.percentile(percent) if each.count else None) == before
        assert found.count == len(values)
        if not values:
            return
        assert_near(found, values, percent)
        found.add(np.array([1], np.int64))
        assert found.count == len(values) + 1
