"""Counters of a replay."""

from __future__ import annotations

import numpy as np

from replay.report.counters import MAX_EXAMPLES, Durations, ExampleCounter


def test_percentiles_of_added_times() -> None:
    times = Durations()
    assert times.ms(50) is None
    times.add_all(np.arange(1, 1501) * 1_000_000)
    for length in range(1501, 3001):
        times.add(length * 1_000_000)
    assert (len(times), times.ms(50), times.ms(100)) == (3000, 1500.0, 3000.0)
    assert times.row("lag")["lag_max_ms"] == 3000.0


def test_number_of_examples_is_bounded() -> None:
    seen = ExampleCounter()
    for number in range(5):
        seen.add(lambda number=number: {"number": number})  # type: ignore[misc]
    assert seen.count == 5
    assert seen.examples == [{"number": number} for number in range(MAX_EXAMPLES)]
    assert seen.first == {"number": 0}
