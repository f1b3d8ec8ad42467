"""Data of the plots: empty bins beside a gap, wrong clocks."""

from __future__ import annotations

import pytest

from report.gather.time_bins import TimeBins
from report.page.plot_data import plot_data
from report.page.safe_text import SafeText, counted_bytes, first_words
from tests.report.gather.test_time_bins import SECOND, START, exchanges


def test_lines_drop_to_zero_in_gaps() -> None:
    bins = TimeBins()
    bins.add(exchanges([START, START + 100_000_000]))
    data = plot_data(bins, START, SafeText())
    assert data["x"] == [0, 0.001, 0.099, 0.1]
    (series,) = data["series"]["all"]
    assert (series["at"], series["count"], series["max"]) == ([0, 3], [1, 1], [1000, 1000])
    assert data["begin_s"] == START / SECOND


@pytest.mark.parametrize("begin_s", [-5, 0, 9_000_000_000])
def test_times_before_1970_have_no_clock(begin_s: int) -> None:
    bins = TimeBins()
    bins.add(exchanges([begin_s * SECOND, (begin_s + 100) * SECOND]))
    data = plot_data(bins, begin_s * SECOND, SafeText())
    assert data["has_clock"] is (begin_s >= 0)
    assert data["x"][-1] == pytest.approx(100, abs=data["width_s"])


def test_no_exchanges() -> None:
    data = plot_data(TimeBins(), 0, SafeText())
    assert data["x"] == []


def test_bytes_have_units() -> None:
    numbers = (0, 999, 1_000, 12_345, 999_999, 5_000_000_000, 7_654_321_000_000)
    assert [counted_bytes(each) for each in numbers] == [
        *("0 bytes", "999 bytes", "1.0 kB", "12.3 kB", "1,000.0 kB", "5.0 GB", "7,654.3 GB"),
    ]


def test_number_of_names_is_bounded() -> None:
    assert first_words(["a", "b"]) == "a, b"
    assert first_words(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"
