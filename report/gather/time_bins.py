"""
Totals of exchanges in time bins, by API, client, topic and broker.

An exchange counts in the bin of its request. Latencies are counted in buckets, 32 per doubling,
which bounds the error of percentiles to 1.1 %. Bins are widened when there are too many.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dissector.engine.tables.column_types import Columns, Integers, Milliseconds, distinct
from dissector.engine.tables.exchange_table import NONE, Ints
from dissector.summary.group_keys import Label, Software, group_rows
from dissector.summary.group_totals import per_value

DIMENSIONS: Mapping[str, tuple[str, ...]] = {
    "all": (),
    "api": ("api",),
    "client": ("client",),
    "topic": ("topic",),
    "broker": ("broker",),
    "error": ("error", "api"),
}
"""Dimensions, and the keys of their labels."""

PERCENTS = (50, 95, 99)

_MS = 1_000_000
_WIDTHS_NS = tuple(
    each * _MS
    for each in (
        *(1, 5, 10, 50, 100, 500, 1_000, 5_000, 10_000, 30_000, 60_000, 300_000, 600_000),
        *(1_800_000, 3_600_000, 21_600_000, 86_400_000),
    )
)
"""Widths of bins; each is a multiple of its predecessor."""

MAX_BINS = 600
_USUAL_BINS = 300
"""Approximate number of bins between the first and the last percent of exchanges."""

MAX_LABELS = 10_000
"""Maximum number of counted labels per dimension; others share code 0."""

_MAX_ROWS = 2_000_000
_MIN_PENDING = 200_000
_BUCKETS_PER_DOUBLING = 32
_NO_LATENCY = -1
_BUCKETS = 64 * _BUCKETS_PER_DOUBLING
"""More than the buckets of all times of 64 bits."""

_SUMS = ("count", "errors", "unanswered", "request_bytes", "response_bytes")
_NARROW: Mapping[str, type[np.signedinteger[Any]]] = {"label": np.int16, "bucket": np.int16}
"""Types of columns that need no 64 bits: there may be millions of rows."""

_Totals: TypeAlias = Mapping[str, NDArray[Any]]
"""Columns of one dimension, of one length: `label`, `bin`, `bucket`, `max_ns`, those of `_SUMS`."""


@dataclass(frozen=True, slots=True)
class Series:
    """
    Data of one line in plots.

    Attributes:
        label: Values of the dimension's keys.
        rows: Rows in time order with `bin`, the columns of `_SUMS`, `max_ns`, `p50_ns`, `p95_ns`
            and `p99_ns`; the last four are null without latencies.
    """

    label: Label
    rows: list[dict[str, Any]]


class TimeBins:
    """
    Totals of exchanges in time bins.

    Attributes:
        BUCKETS: Buckets of latencies per doubling in `density`.
    """

    BUCKETS = 4

    def __init__(self, max_bins: int = MAX_BINS) -> None:
        """Start; `max_bins` limits the number of occupied bins."""
        self._max_bins = max_bins
        self._width = 0
        self._labels: dict[str, dict[Label, int]] = {name: {} for name in DIMENSIONS}
        self._merged: dict[str, _Totals] = {}
        self._pending: dict[str, list[_Totals]] = {name: [] for name in DIMENSIONS}
        self._pending_rows = 0

    @property
    def width_ns(self) -> int:
        """Width of a bin."""
        return _WIDTHS_NS[self._width]

    def add(self, columns: Columns) -> None:
        """Add columns of `pairs`."""
        measured = _measured(columns)
        measured["bin"] = measured.pop("time_ns") // self.width_ns
        for dimension, keys in DIMENSIONS.items():
            found = group_rows(columns, keys, _unknown_software)
            codes = self._codes(dimension, found.codes, found.labels)
            if len(codes):
                totals = {name: column[found.rows] for name, column in measured.items()}
                grouped = _grouped({"label": codes, **totals})
                self._pending[dimension].append(grouped)
                self._pending_rows += _row_count(grouped)
        if self._pending_rows > max(_MIN_PENDING, sum(map(_row_count, self._merged.values()))):
            self._merge()

    def occupied(self) -> list[int]:
        """Return the numbers of occupied bins, in order; number times width is the begin."""
        merged = self._merge()
        if not merged:
            return []
        while _spread(merged["all"]) > _USUAL_BINS and self._width + 1 < len(_WIDTHS_NS):
            self._widen()
        found: list[int] = distinct(merged["all"]["bin"])[1].tolist()
        return found

    def series(self, dimension: str, most: int) -> list[Series]:
        """Return the series of the labels with the most exchanges, in descending order."""
        own = self._merge().get(dimension)
        if own is None:
            return []
        labels = self._labels[dimension]
        counts = np.zeros(len(labels) + 1, np.int64)
        np.add.at(counts, own["label"], own["count"])
        counts[0] = 0
        busiest = np.argsort(-counts, kind="stable")[:most]
        names = {code: label for label, code in labels.items()}
        return [
            Series(names[code], _with_percentiles(_chosen(own, own["label"] == code)))
            for code in busiest.tolist()
            if counts[code]
        ]

    def density(self) -> list[dict[str, Any]]:
        """Return `count` and `errors` for each `bin` and `bucket` of latencies of all exchanges."""
        totals = self._merge().get("all")
        if totals is None:
            return []
        answered = _chosen(totals, totals["bucket"] != _NO_LATENCY)
        coarse = answered["bucket"] // (_BUCKETS_PER_DOUBLING // self.BUCKETS)
        found = _grouped({**answered, "bucket": coarse})
        return _rows({name: found[name] for name in ("bin", "bucket", "count", "errors")})

    def _codes(self, dimension: str, codes: Ints, labels: Sequence[Label]) -> Ints:
        """Map the codes of a window to numbers of labels."""
        known = self._labels[dimension]
        numbers = np.zeros(len(labels), np.int64)
        for code in np.flatnonzero(np.bincount(codes, minlength=len(labels))).tolist():
            if labels[code] in known or len(known) < MAX_LABELS:
                numbers[code] = known.setdefault(labels[code], len(known) + 1)
        return numbers[codes]

    def _merge(self) -> Mapping[str, _Totals]:
        """Merge all totals into one table a dimension, with wider bins if there are too many."""
        self._pending_rows = 0
        for dimension, pending in self._pending.items():
            if not pending:
                continue
            merged = self._merged.pop(dimension, None)
            parts = [*([] if merged is None else [merged]), *pending]
            pending.clear()
            joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
            del merged, parts
            self._merged[dimension] = _grouped(joined)
        while self._merged and self._are_too_many() and self._width + 1 < len(_WIDTHS_NS):
            self._widen()
        return self._merged

    def _widen(self) -> None:
        ratio = _WIDTHS_NS[self._width + 1] // self.width_ns
        self._width += 1
        for dimension, totals in self._merged.items():
            self._merged[dimension] = _grouped({**totals, "bin": totals["bin"] // ratio})

    def _are_too_many(self) -> bool:
        bins = len(distinct(self._merged["all"]["bin"])[1])
        return bins > self._max_bins or sum(map(_row_count, self._merged.values())) > _MAX_ROWS


def _unknown_software(connection: int) -> Software:
    return None, None


def _measured(columns: Columns) -> dict[str, Ints]:
    """Return time, bucket and summands of each exchange."""
    request, response = columns["request_time_ns"], columns["response_time_ns"]
    latency = columns["latency_ms"]
    assert isinstance(request, Integers)
    assert isinstance(response, Integers)
    assert isinstance(latency, Milliseconds)
    ns = latency.values_ns
    log = np.log2(np.maximum(ns, 1).astype(np.float64))
    return {
        "time_ns": np.where(request.values == NONE, response.values, request.values),
        "bucket": np.where(ns == NONE, _NO_LATENCY, np.int64(log * _BUCKETS_PER_DOUBLING)),
        "max_ns": np.where(ns == NONE, -1, np.maximum(ns, 0)),
        "count": np.ones(len(ns), np.int64),
        "errors": per_value(columns["errors"], bool),
        "unanswered": per_value(columns["status"], lambda status: status == "unanswered"),
        "request_bytes": _bytes(columns["request_bytes"]),
        "response_bytes": _bytes(columns["response_bytes"]),
    }


def _bytes(column: Any) -> Ints:
    values: Ints = column.values
    return np.where(values == NONE, 0, values)


def _row_count(totals: _Totals) -> int:
    return len(totals["count"])


def _chosen(totals: _Totals, rows: NDArray[Any]) -> _Totals:
    return {name: column[rows] for name, column in totals.items()}


def _rows(columns: Mapping[str, Ints]) -> list[dict[str, Any]]:
    """Return a mapping of names to numbers for each row."""
    values = [column.tolist() for column in columns.values()]
    return [dict(zip(columns, row, strict=True)) for row in zip(*values, strict=True)]


def _grouped(totals: _Totals) -> _Totals:
    """Return one row for each label, bin and bucket, in this order."""
    places, bins = distinct(totals["bin"])
    keys = totals["label"].astype(np.int64) * len(bins) + places
    keys = keys * _BUCKETS + (totals["bucket"] - _NO_LATENCY)
    order = np.argsort(keys)
    starts = _starts(keys[order])
    first = order[starts]
    out = {name: totals[name][first] for name in ("label", "bin", "bucket")}
    out |= {name: np.add.reduceat(totals[name][order], starts) for name in _SUMS}
    out["max_ns"] = np.maximum.reduceat(totals["max_ns"][order], starts)
    return {name: each.astype(_NARROW.get(name, np.int64)) for name, each in out.items()}


def _starts(ordered: Ints) -> Ints:
    """Return where runs of equal numbers begin."""
    return np.flatnonzero(np.diff(ordered, prepend=ordered[:1] - 1))


def _spread(totals: _Totals) -> int:
    """Return the number of bins between most exchanges, ignoring outliers of wrong clocks."""
    places, bins = distinct(totals["bin"])
    counts = np.zeros(len(bins), np.int64)
    np.add.at(counts, places, totals["count"])
    share = np.cumsum(counts) / counts.sum()
    middle = bins[(share >= 0.01) & (share <= 0.99)]
    return int(middle[-1] - middle[0]) + 1 if len(middle) else 1


def _with_percentiles(totals: _Totals) -> list[dict[str, Any]]:
    """Return a row for each bin of grouped totals of a label, with percentiles of the buckets."""
    starts = _starts(totals["bin"])
    out = {name: np.add.reduceat(totals[name], starts) for name in _SUMS}
    most = np.maximum.reduceat(totals["max_ns"], starts)
    answered = np.where(totals["bucket"] == _NO_LATENCY, 0, totals["count"])
    rank = np.cumsum(answered)
    before, all_of_bin = rank[starts] - answered[starts], np.add.reduceat(answered, starts)
    rows = _rows({"bin": totals["bin"][starts], **out, "max_ns": most})
    for percent in PERCENTS:
        at = np.searchsorted(rank, before + (all_of_bin * percent + 99) // 100)
        middle = 2.0 ** ((totals["bucket"][at] + 0.5) / _BUCKETS_PER_DOUBLING)
        # The middle of a bucket may exceed its highest value.
        middle_ns = np.minimum(np.minimum(middle, 2.0**62).astype(np.int64), most)
        for row, ns in zip(rows, middle_ns.tolist(), strict=True):
            row[f"p{percent}_ns"] = ns
    for row in rows:
        if row["max_ns"] < 0:
            row |= dict.fromkeys(("max_ns", *(f"p{percent}_ns" for percent in PERCENTS)))
    return rows
