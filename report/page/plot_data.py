"""Data of the plots, for the script of the page."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

from report.gather.lag_courses import LagCourse
from report.gather.time_bins import DIMENSIONS, Series, TimeBins
from report.page.safe_text import SafeText

MAX_SERIES = 24
"""Maximum number of values to choose from, those with the most exchanges."""

MAX_COMPARED = 8
"""Maximum number of values compared in a plot."""

_COUNTS = ("count", "errors", "unanswered", "request_bytes", "response_bytes")
_TIMES = ("p50_ns", "p95_ns", "p99_ns", "max_ns")


def plot_data(
    bins: TimeBins, begin_ns: int, safe: SafeText, lags: Sequence[LagCourse] = ()
) -> dict[str, Any]:
    """
    Return the data of the plots.

    A series has counts and latencies (in microseconds) for the bins in `at`; its other bins are
    empty. Gaps between bins in `x` contain two empty bins, so that lines drop to zero.

    Args:
        bins: Totals over time.
        begin_ns: Begin of the first exchange.
        safe: Converts names to escaped texts.
        lags: The lag of groups; the first ones are shown.
    """
    numbers = _with_neighbours(bins.occupied())
    index = {number: place for place, number in enumerate(numbers)}
    width_ns, begin_s = bins.width_ns, begin_ns / 1e9
    has_clock = begin_ns >= 0  # times before 1970 are seconds since the first exchange
    return {
        "begin_s": begin_s if has_clock else 0,
        "has_clock": has_clock,
        "width_s": width_ns / 1e9,
        "compared": MAX_COMPARED,
        "x": [round((number * width_ns - begin_ns) / 1e9, 6) for number in numbers],
        "series": {
            dimension: [
                _series(each, index, safe) for each in bins.series(dimension, _most(dimension))
            ]
            for dimension in DIMENSIONS
        },
        "lags": [
            {
                "name": safe.text(each.group),
                "lag": _known_at(each, [(number + 1) * width_ns for number in numbers]),
            }
            for each in lags[:MAX_COMPARED]
        ],
    }


def _known_at(course: LagCourse, times_ns: Sequence[int]) -> list[int | None]:
    """Return the lag at each of these times: that of the last change before; at last the last."""
    places = [bisect_right(course.time_ns, time_ns) for time_ns in times_ns]
    # The last interval ends behind the capture.
    places[-1:] = [len(course.time_ns)]
    return [course.lag[place - 1] if place else None for place in places]


def _most(dimension: str) -> int:
    return MAX_SERIES if DIMENSIONS[dimension] else 1


def _with_neighbours(occupied: Sequence[int]) -> list[int]:
    """Return the occupied bins and their empty neighbours."""
    if not occupied:
        return []
    around = {number + step for number in occupied for step in (-1, 0, 1)}
    return sorted(each for each in around if occupied[0] <= each <= occupied[-1])


def _series(series: Series, index: Mapping[int, int], safe: SafeText) -> dict[str, Any]:
    columns: dict[str, list[Any]] = {
        name: [row[name] for row in series.rows] for name in (*_COUNTS, *_TIMES)
    }
    return {
        "name": name_of(series.label, safe),
        "at": [index[row["bin"]] for row in series.rows],
        **{name: columns[name] for name in _COUNTS},
        **{
            name.removesuffix("_ns"): [None if each is None else each // 1000 for each in values]
            for name, values in columns.items()
            if name in _TIMES
        },
    }


def name_of(label: Sequence[Any], safe: SafeText) -> str:
    """Return the name of a label: `shop at 10.0.0.7` for a client."""
    words = ["(none)" if part is None else safe.text(part) for part in label]
    return " at ".join(words) or "all exchanges"
