"""
Totals of exchanges in time bins, by API, client, topic and broker.

An exchange counts in the bin of its request. Latencies are counted in buckets, 32 per doubling,
which bounds the error of percentiles to 1.1 %. Bins are widened when there are too many: of bins,
or of cells, whose exchanges have bin, label and bucket in common.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dissector.engine.tables.column_types import Columns, Integers, Milliseconds, distinct
from dissector.engine.tables.exchange_table import NONE, Ints
from dissector.summary.group_keys import Label, Software, group_rows
from dissector.summary.group_totals import per_value
from report.gather.keyed_totals import KeyedTotals, Totals, chosen

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
"""Maximum number of counted labels per dimension; the others are left out."""

_MAX_ROWS = 1_000_000
_MIN_PENDING = 50_000
_PENDING_SHARE = 4
"""Rows are merged when there are more of them than this, and than this part of the merged ones."""

_BUCKETS_PER_DOUBLING = 32
_NO_LATENCY = 0
"""Bucket of exchanges without a latency; that of a latency is one more than its own."""

_ERROR, _UNANSWERED = 1, 2
_FLAG_BITS, _BUCKET_BITS, _LABEL_BITS = 2, 12, 14
_LABEL_SHIFT = _FLAG_BITS + _BUCKET_BITS
_LABELS, _BUCKETS = (1 << _LABEL_BITS) - 1, (1 << _BUCKET_BITS) - 1
"""A cell is the place of a bin, a label, a bucket, and flags, in the bits of one number."""

_UNCOUNTED = 0
"""Label of those beyond `MAX_LABELS`: no plot shows them."""

_SUMS = ("request_bytes", "response_bytes", "max_ns")


@dataclass(frozen=True, slots=True)
class Series:
    """
    Data of one line in plots.

    Attributes:
        label: Values of the dimension's keys.
        rows: Rows in time order with `bin`, `count`, `errors`, `unanswered`, `request_bytes`,
            `response_bytes`, `max_ns`, `p50_ns`, `p95_ns` and `p99_ns`; the last four are null
            without latencies.
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
        # Numbers of occupied bins, and where they are among them, as they were met.
        self._places: dict[int, int] = {}
        self._labels: dict[str, dict[Label, int]] = {name: {} for name in DIMENSIONS}
        self._cells = {name: KeyedTotals("count") for name in DIMENSIONS}
        self._sums = {name: KeyedTotals(*_SUMS) for name in DIMENSIONS}

    @property
    def width_ns(self) -> int:
        """Width of a bin."""
        return _WIDTHS_NS[self._width]

    def add(self, columns: Columns) -> None:
        """Add columns of `pairs`."""
        places = self._place(_time_ns(columns))
        cell, sums = _cell(columns), _sums(columns)
        for dimension, keys in DIMENSIONS.items():
            found = group_rows(columns, keys, _unknown_software)
            labels = self._codes(dimension, found.codes, found.labels)
            counted = np.flatnonzero(labels != _UNCOUNTED)
            rows, labels = found.rows[counted], labels[counted]
            if len(rows):
                key = places[rows] << _LABEL_BITS | labels
                self._sums[dimension].add({"key": key, **chosen(sums, rows)})
                key = key << _LABEL_SHIFT | cell[rows]
                self._cells[dimension].add({"key": key, "count": np.ones(len(rows), np.int64)})
        while len(self._places) > self._max_bins and self._can_widen:
            self._widen()
        pending = sum(each.added for each in self._cells.values())
        if pending > max(_MIN_PENDING, self._cell_count // _PENDING_SHARE):
            self._merge()

    def occupied(self) -> list[int]:
        """Return the numbers of occupied bins, in order; number times width is the begin."""
        self._merge()
        while self._places and self._spread() > _USUAL_BINS and self._can_widen:
            self._widen()
        return sorted(self._places)

    def series(self, dimension: str, most: int) -> list[Series]:
        """Return the series of the labels with the most exchanges, in descending order."""
        cells, sums = self._cells[dimension].merged(), self._sums[dimension].merged()
        label_of_cell = cells["key"] >> _LABEL_SHIFT & _LABELS
        label_of_sum = sums["key"] & _LABELS
        labels = self._labels[dimension]
        counts = np.zeros(len(labels) + 1, np.int64)
        np.add.at(counts, label_of_cell, cells["count"])
        names = {code: label for label, code in labels.items()}
        found = []
        for code in np.argsort(-counts, kind="stable")[:most].tolist():
            if counts[code]:
                own = self._cells_in_time(chosen(cells, label_of_cell == code))
                totals = self._sums_in_time(chosen(sums, label_of_sum == code))
                found.append(Series(names[code], _rows_of_bins(own, totals)))
        return found

    def density(self) -> list[dict[str, Any]]:
        """Return `count` and `errors` for each `bin` and `bucket` of latencies of all exchanges."""
        cells = self._cells_in_time(self._cells["all"].merged())
        answered = chosen(cells, cells["bucket"] != _NO_LATENCY)
        coarse = (answered["bucket"] - 1) // (_BUCKETS_PER_DOUBLING // self.BUCKETS)
        starts = np.flatnonzero(_begins(answered["bin"]) | _begins(coarse))
        columns = {"bin": answered["bin"][starts], "bucket": coarse[starts]}
        columns |= {name: _added(answered[name], starts) for name in ("count", "errors")}
        return _rows(columns)

    def _place(self, time_ns: Ints) -> Ints:
        """Return the places of the bins of times; new bins get the next ones."""
        codes, bins = distinct(time_ns // self.width_ns)
        places = [self._places.setdefault(each, len(self._places)) for each in bins.tolist()]
        return np.array(places, np.int64)[codes]

    def _codes(self, dimension: str, codes: Ints, labels: Sequence[Label]) -> Ints:
        """Map the codes of a window to numbers of labels."""
        known = self._labels[dimension]
        numbers = np.full(len(labels), _UNCOUNTED, np.int64)
        for code in np.flatnonzero(np.bincount(codes, minlength=len(labels))).tolist():
            if labels[code] in known or len(known) < MAX_LABELS:
                numbers[code] = known.setdefault(labels[code], len(known) + 1)
        return numbers[codes]

    @property
    def _cell_count(self) -> int:
        return sum(map(len, self._cells.values()))

    @property
    def _can_widen(self) -> bool:
        return self._width + 1 < len(_WIDTHS_NS)

    def _merge(self) -> None:
        """Merge rows of equal cells, with wider bins if there are too many."""
        for totals in (*self._cells.values(), *self._sums.values()):
            totals.merged()
        while self._cell_count > _MAX_ROWS and self._can_widen:
            self._widen()

    def _widen(self) -> None:
        ratio = _WIDTHS_NS[self._width + 1] // self.width_ns
        self._width += 1
        before, self._places = self._places, {}
        wider = (each // ratio for each in before)
        new = np.array([self._places.setdefault(e, len(self._places)) for e in wider], np.int64)
        for tables, bits in ((self._cells, _LABEL_BITS + _LABEL_SHIFT), (self._sums, _LABEL_BITS)):
            for totals in tables.values():
                totals.change_keys(partial(_with_places, new, bits))

    def _spread(self) -> int:
        """Return the number of bins between most exchanges, ignoring outliers of wrong clocks."""
        cells = self._cells["all"].merged()
        counts = np.zeros(len(self._places), np.int64)
        np.add.at(counts, cells["key"] >> _LABEL_BITS + _LABEL_SHIFT, cells["count"])
        bins = self._bins
        order = np.argsort(bins)
        share = np.cumsum(counts[order]) / counts.sum()
        middle = bins[order][(share >= 0.01) & (share <= 0.99)]
        return int(middle[-1] - middle[0]) + 1 if len(middle) else 1

    @property
    def _bins(self) -> Ints:
        """The number of the bin at each place."""
        return np.array(list(self._places), np.int64)

    def _cells_in_time(self, cells: Totals) -> Totals:
        """Return `bin`, `bucket`, `count`, `errors` and `unanswered` of cells of a label."""
        key, count = cells["key"], cells["count"]
        bins = self._bins[key >> _LABEL_BITS + _LABEL_SHIFT]
        found = {
            "bin": bins,
            "bucket": key >> _FLAG_BITS & _BUCKETS,
            "count": count,
            "errors": np.where(key & _ERROR, count, 0),
            "unanswered": np.where(key & _UNANSWERED, count, 0),
        }
        # Cells of a bin are in the order of their buckets, bins as they were met.
        return chosen(found, np.argsort(bins, kind="stable"))

    def _sums_in_time(self, sums: Totals) -> Totals:
        """Return `bin`, and the columns of sums, of a label."""
        bins = self._bins[sums["key"] >> _LABEL_BITS]
        return chosen({**sums, "bin": bins}, np.argsort(bins, kind="stable"))


def _unknown_software(connection: int) -> Software:
    return None, None


def _time_ns(columns: Columns) -> Ints:
    """Return the time of each exchange."""
    request, response = columns["request_time_ns"], columns["response_time_ns"]
    assert isinstance(request, Integers)
    assert isinstance(response, Integers)
    found: Ints = np.where(request.values == NONE, response.values, request.values)
    return found


def _latency_ns(columns: Columns) -> Ints:
    latency = columns["latency_ms"]
    assert isinstance(latency, Milliseconds)
    return latency.values_ns


def _cell(columns: Columns) -> Ints:
    """Return the bucket and the flags of each exchange."""
    ns = _latency_ns(columns)
    own = np.int64(np.log2(np.maximum(ns, 1).astype(np.float64)) * _BUCKETS_PER_DOUBLING)
    bucket = np.where(ns == NONE, _NO_LATENCY, own + 1)
    has_error = per_value(columns["errors"], bool)
    unanswered = per_value(columns["status"], lambda status: status == "unanswered")
    return bucket << _FLAG_BITS | has_error * _ERROR | unanswered * _UNANSWERED


def _sums(columns: Columns) -> Totals:
    """Return what is added up of each exchange, and what the highest is shown of."""
    ns = _latency_ns(columns)
    return {
        "request_bytes": _bytes(columns["request_bytes"]),
        "response_bytes": _bytes(columns["response_bytes"]),
        "max_ns": np.where(ns == NONE, -1, np.maximum(ns, 0)),
    }


def _bytes(column: Any) -> Ints:
    values: Ints = column.values
    return np.where(values == NONE, 0, values)


def _with_places(new: Ints, bits: int, key: Ints) -> Ints:
    """Return keys with new places of bins; the rest is in the lower bits."""
    found: Ints = new[key >> bits] << bits | key & ((1 << bits) - 1)
    return found


def _rows(columns: Mapping[str, Ints]) -> list[dict[str, Any]]:
    """Return a mapping of names to numbers for each row."""
    values = [column.tolist() for column in columns.values()]
    return [dict(zip(columns, row, strict=True)) for row in zip(*values, strict=True)]


def _begins(ordered: Ints) -> NDArray[np.bool_]:
    """Return where runs of equal numbers begin."""
    found: NDArray[np.bool_] = np.diff(ordered, prepend=ordered[:1] - 1) != 0
    return found


def _added(column: Ints, starts: Ints) -> Ints:
    found: Ints = np.add.reduceat(column, starts) if len(starts) else column
    return found


def _rows_of_bins(cells: Totals, sums: Totals) -> list[dict[str, Any]]:
    """Return a row for each bin, of the cells and sums of a label, with percentiles."""
    starts = np.flatnonzero(_begins(cells["bin"]))
    counts = {name: _added(cells[name], starts) for name in ("count", "errors", "unanswered")}
    most = sums["max_ns"]
    rows = _rows({"bin": sums["bin"], **counts, **{name: sums[name] for name in _SUMS}})
    answered = np.where(cells["bucket"] == _NO_LATENCY, 0, cells["count"])
    rank = np.cumsum(answered)
    before, all_of_bin = rank[starts] - answered[starts], _added(answered, starts)
    for percent in PERCENTS:
        at = np.searchsorted(rank, before + (all_of_bin * percent + 99) // 100)
        middle = 2.0 ** ((cells["bucket"][at] - 1 + 0.5) / _BUCKETS_PER_DOUBLING)
        # The middle of a bucket may exceed its highest value.
        middle_ns = np.minimum(np.minimum(middle, 2.0**62).astype(np.int64), most)
        for row, ns in zip(rows, middle_ns.tolist(), strict=True):
            row[f"p{percent}_ns"] = ns
    for row in rows:
        if row["max_ns"] < 0:
            row |= dict.fromkeys(("max_ns", *(f"p{percent}_ns" for percent in PERCENTS)))
    return rows
