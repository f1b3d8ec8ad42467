"""Totals over time: sums, percentiles, bins that become wider."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pytest

from dissector.engine.exchanges.exchange_columns import row_columns
from dissector.engine.tables.column_types import Columns
from report.gather import time_bins
from report.gather.time_bins import DIMENSIONS, MAX_LABELS, TimeBins

SECOND = 1_000_000_000
START = 1_700_000_000 * SECOND


def exchanges(
    times: Iterable[int], latencies: Sequence[int | None] = (), topics: Sequence[str] = ("t",)
) -> Columns:
    """Return exchanges of one client at these times."""
    rows = []
    for number, time_ns in enumerate(times):
        latency = latencies[number] if latencies else 1_000_000
        answered = latency is not None
        rows.append(
            {
                "capture": "a.pcap",
                "connection": 0,
                "api": "Fetch",
                "api_version": 4,
                "client_id": "c",
                "client": "10.0.0.1:5000",
                "broker": "10.0.0.2:9092",
                "status": "answered" if answered else "unanswered",
                "errors": ["E"],
                "topics": list(topics),
                "problems": [],
                "request_bytes": 10,
                "response_bytes": 20 if answered else None,
                "request_time_ns": time_ns,
                "response_time_ns": time_ns + latency if latency is not None else None,
                "request_packet": 1,
                "response_packet": 2,
                "correlation_id": number,
            }
        )
    return row_columns(rows)


def test_sums_of_bins() -> None:
    bins = TimeBins()
    bins.add(exchanges([START, START + 100, START + 7_000_000]))
    bins.add(exchanges([START + 200], [None]))
    (series,) = bins.series("all", 1)
    assert bins.width_ns == 1_000_000
    assert [(row["bin"] * bins.width_ns - START, row["count"]) for row in series.rows] == [
        (0, 3),
        (7_000_000, 1),
    ]
    assert series.rows[0]["unanswered"] == 1
    assert series.rows[0]["response_bytes"] == 40
    assert series.rows[0]["errors"] == 3


def test_percentiles_use_the_nearest_rank() -> None:
    latencies = np.random.default_rng(7).lognormal(15, 2, 5_000).astype(np.int64).tolist()
    bins = TimeBins()
    for part in range(0, 5_000, 1_000):
        bins.add(exchanges([START] * 1_000, latencies[part : part + 1_000]))
    (row,) = bins.series("api", 1)[0].rows
    ordered = sorted(latencies)
    for percent in (50, 95, 99):
        exact = ordered[-(-percent * 5_000 // 100) - 1]
        assert row[f"p{percent}_ns"] == pytest.approx(exact, rel=0.012)
    assert row["max_ns"] == ordered[-1]


def test_without_a_latency_there_is_no_percentile() -> None:
    bins = TimeBins()
    bins.add(exchanges([START], [None]))
    (row,) = bins.series("all", 1)[0].rows
    assert [row[name] for name in ("p50_ns", "p95_ns", "p99_ns", "max_ns")] == [None] * 4


def test_no_percentile_is_above_the_highest() -> None:
    bins = TimeBins()
    bins.add(exchanges([START], [0]))
    bins.add(exchanges([START + SECOND], [1_000_003]))
    for row in bins.series("all", 1)[0].rows:
        assert row["p50_ns"] <= row["max_ns"]


@pytest.mark.parametrize("parts", [1, 10])
def test_bins_beyond_the_limit_are_merged(parts: int) -> None:
    bins = TimeBins(max_bins=50)
    times = [START + number * SECOND for number in range(1_000)]
    for part in np.array_split(times, parts):
        bins.add(exchanges(part.tolist()))
    assert len(bins.occupied()) <= 51
    assert bins.width_ns == 30 * SECOND
    (series,) = bins.series("topic", 1)
    assert sum(row["count"] for row in series.rows) == 1_000


def test_the_parts_in_which_exchanges_come_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_bins, "_MIN_PENDING", 40)
    random = np.random.default_rng(3)
    offsets = random.integers(0, 90 * SECOND, 600)  # in no order
    times = [START + int(each) for each in offsets]
    latencies = [int(each) if each else None for each in random.integers(0, 50, 600) * 100_000]
    found = []
    for parts in (1, 7, 60):
        bins = TimeBins()
        for rows in np.array_split(np.arange(600), parts):
            chosen = slice(int(rows[0]), int(rows[-1]) + 1)
            bins.add(exchanges(times[chosen], latencies[chosen]))
        found.append((bins.occupied(), bins.series("topic", 3), bins.density()))
    assert found[0] == found[1] == found[2]
    numbers, (series,), density = found[0]
    assert [row["bin"] for row in series.rows] == numbers
    assert sum(row["unanswered"] for row in series.rows) == latencies.count(None)
    answered = 600 - latencies.count(None)
    assert [sum(each[name] for each in density) for name in ("count", "errors")] == [answered] * 2


def test_too_many_cells_widen_bins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_bins, "_MIN_PENDING", 100)
    monkeypatch.setattr(time_bins, "_MAX_ROWS", 500)
    bins = TimeBins()
    for begin in range(0, 500, 50):
        times = [START + number * 1_000_000 for number in range(begin, begin + 50)]
        bins.add(exchanges(times, [1_000_000 << number % 7 for number in range(50)]))
    bins.occupied()
    assert bins.width_ns == 50_000_000  # six times ten bins of seven buckets
    assert [sum(row["count"] for row in bins.series(name, 1)[0].rows) for name in DIMENSIONS] == [
        500
    ] * 6


def test_a_wrong_clock_does_not_widen_bins() -> None:
    bins = TimeBins()
    bins.add(exchanges([0, *(START + number * 1_000_000 for number in range(200))]))
    assert bins.occupied()[0] == 0
    assert bins.width_ns == 1_000_000


def test_busiest_labels_come_first() -> None:
    bins = TimeBins()
    bins.add(exchanges([START], topics=["few"]))
    bins.add(exchanges([START] * 3, topics=["many", "all"]))
    assert [each.label for each in bins.series("topic", 2)] == [("many",), ("all",)]


def test_labels_beyond_the_limit_have_no_series() -> None:
    bins = TimeBins()
    bins.add(exchanges([START], topics=[f"t{number}" for number in range(MAX_LABELS)]))
    bins.add(exchanges([START] * 5, topics=["late"]))
    assert ("late",) not in {each.label for each in bins.series("topic", MAX_LABELS + 5)}
    assert sum(row["count"] for row in bins.series("all", 1)[0].rows) == 6


def test_without_exchanges() -> None:
    bins = TimeBins()
    assert bins.occupied() == []
    assert bins.series("api", 5) == []
