"""The exchanges with the highest values."""

from __future__ import annotations

from report.gather.extreme_exchanges import ExtremeExchanges, latency_ns, total_bytes
from tests.report.gather.test_time_bins import START, exchanges


def test_the_highest_of_all_parts() -> None:
    slowest = ExtremeExchanges(3, latency_ns)
    slowest.add(exchanges([START] * 4, [5_000_000, 1_000_000, None, 9_000_000]))
    slowest.add(exchanges([START] * 2, [7_000_000, 5_000_000]))
    assert [row["latency_ms"] for row in slowest.rows] == [9.0, 7.0, 5.0]
    assert slowest.rows[-1]["correlation_id"] == 0  # the first of equal ones


def test_exchanges_without_a_value_are_omitted() -> None:
    slowest = ExtremeExchanges(3, latency_ns)
    slowest.add(exchanges([START], [None]))
    assert slowest.rows == []


def test_bytes_of_both_sides() -> None:
    largest = ExtremeExchanges(2, total_bytes)
    largest.add(exchanges([START] * 2, [None, 1]))
    assert [row["response_bytes"] for row in largest.rows] == [20, None]
