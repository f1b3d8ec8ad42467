"""Data of the plot of latencies, for the script of the page: dots, or their density."""

from __future__ import annotations

from collections import Counter
from typing import Any

from report.gather.exchange_dots import ExchangeDots
from report.gather.time_bins import TimeBins
from report.page.safe_text import SafeText

_NAMED = ("Produce", "Fetch")
"""APIs with a colour of their own, before the most frequent others."""
_COLORS = 4
_PLAIN, _ERROR, _EMPTY = range(3)


def dot_data(dots: ExchangeDots, begin_ns: int, safe: SafeText) -> dict[str, Any]:
    """
    Return the exchanges in columns, the APIs that have a colour first.

    Times are in seconds since the begin of the plots, latencies in microseconds, or null without a
    response. A kind is 0, 1 with an error, or 2 for a fetch that brought no records.
    """
    counts = Counter(each.api for each in dots.dots)
    apis = [api for api in _NAMED if counts[api]]
    apis += [api for api, _ in counts.most_common() if api and api not in apis]
    index: dict[str | None, int] = {api: place for place, api in enumerate(apis)}
    return {
        "apis": [safe.text(api) for api in apis],
        "colors": min(_COLORS, len(apis)),
        "at": [round((each.time_ns - begin_ns) / 1e9, 6) for each in dots.dots],
        "us": [None if each.latency_ns is None else each.latency_ns // 1000 for each in dots.dots],
        "api": [index.get(each.api, -1) for each in dots.dots],
        "kind": [
            _ERROR if each.errors else _EMPTY if each.is_empty else _PLAIN for each in dots.dots
        ],
        "packet": [each.packet for each in dots.dots],
        "title": [
            safe.text(" ".join(filter(None, (each.client_id, ", ".join(each.errors)))))
            for each in dots.dots
        ],
    }


def density_data(bins: TimeBins, begin_ns: int) -> dict[str, Any]:
    """Return the number of exchanges, and of errors, for each bin of time and of latency."""
    cells = bins.density()
    width_ns = bins.width_ns
    return {
        "width_s": width_ns / 1e9,
        "per_doubling": bins.BUCKETS,
        "at": [round((each["bin"] * width_ns - begin_ns) / 1e9, 6) for each in cells],
        "bucket": [each["bucket"] for each in cells],
        "count": [each["count"] for each in cells],
        "errors": [each["errors"] for each in cells],
    }
