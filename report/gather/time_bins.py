"""
Totals of exchanges in time bins, by API, client, topic and broker.

An exchange counts in the bin of its request. Latencies are counted in buckets, 32 per doubling,
which bounds the error of percentiles to 1.1 %. Bins are widened when there are too many.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dissector.engine.tables.column_types import Columns, Integers, Milliseconds
from dissector.engine.tables.exchange_table import NONE, Ints
from dissector.summary.group_keys import Label, Software, group_rows
from dissector.summary.group_totals import per_value

if TYPE_CHECKING:
    from polars import DataFrame

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

_KEYS = ("dimension", "label", "bin", "bucket")
_SUMS = ("count", "errors", "unanswered", "request_bytes", "response_bytes")


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
        self._merged: DataFrame | None = None
        self._pending: list[DataFrame] = []
        self._pending_rows = 0

    @property
    def width_ns(self) -> int:
        """Width of a bin."""
        return _WIDTHS_NS[self._width]

    def add(self, columns: Columns) -> None:
        """Add columns of `pairs`."""
        rows = _measured(columns)
        for number, (dimension, keys) in enumerate(DIMENSIONS.items()):
            found = group_rows(columns, keys, _unknown_software)
            codes = self._codes(dimension, found.codes, found.labels)
            self._append(rows, found.rows, codes, number)
        if self._pending_rows > max(
            _MIN_PENDING, 0 if self._merged is None else self._merged.height
        ):
            self._merge()

    def occupied(self) -> list[int]:
        """Return the numbers of occupied bins, in order; number times width is the begin."""
        frame = self._merge()
        if frame is None:
            return []
        while self._spread(frame) > _USUAL_BINS and self._width + 1 < len(_WIDTHS_NS):
            frame = self._widened(frame)
        self._merged = frame
        numbers = frame.filter(frame["dimension"] == 0)["bin"].unique().sort()
        found: list[int] = numbers.to_list()
        return found

    def series(self, dimension: str, most: int) -> list[Series]:
        """Return the series of the labels with the most exchanges, in descending order."""
        import polars as pl

        frame = self._merge()
        if frame is None:
            return []
        own = frame.filter(pl.col("dimension") == list(DIMENSIONS).index(dimension))
        totals = own.filter(pl.col("label") > 0).group_by("label").agg(pl.col("count").sum())
        busiest = totals.sort("count", "label", descending=[True, False]).head(most)["label"]
        rows = _with_percentiles(own.filter(pl.col("label").is_in(busiest.implode())))
        names = {code: label for label, code in self._labels[dimension].items()}
        parts = rows.sort("bin").partition_by("label", as_dict=True, include_key=False)
        return [Series(names[code], parts[(code,)].to_dicts()) for code in busiest.to_list()]

    def density(self) -> list[dict[str, Any]]:
        """Return `count` and `errors` for each `bin` and `bucket` of latencies of all exchanges."""
        import polars as pl

        frame = self._merge()
        if frame is None:
            return []
        answered = frame.filter((pl.col("dimension") == 0) & (pl.col("bucket") != _NO_LATENCY))
        coarse = pl.col("bucket").floordiv(_BUCKETS_PER_DOUBLING // self.BUCKETS)
        found = answered.with_columns(coarse).group_by("bin", "bucket")
        return found.agg(pl.col("count", "errors").sum()).sort("bin", "bucket").to_dicts()

    def _codes(self, dimension: str, codes: Ints, labels: Sequence[Label]) -> Ints:
        """Map the codes of a window to numbers of labels."""
        known = self._labels[dimension]
        numbers = np.zeros(len(labels), np.int64)
        for code in np.flatnonzero(np.bincount(codes, minlength=len(labels))).tolist():
            if labels[code] in known or len(known) < MAX_LABELS:
                numbers[code] = known.setdefault(labels[code], len(known) + 1)
        return numbers[codes]

    def _append(self, measured: Mapping[str, Ints], rows: Ints, labels: Ints, number: int) -> None:
        import polars as pl

        if not len(rows):
            return
        values = {name: column[rows] for name, column in measured.items()}
        frame = pl.DataFrame({**values, "label": labels}).with_columns(
            pl.col("time_ns").floordiv(self.width_ns).alias("bin"),
            pl.lit(number, pl.Int64).alias("dimension"),
        )
        self._pending.append(_grouped(frame))
        self._pending_rows += self._pending[-1].height

    def _merge(self) -> DataFrame | None:
        """Merge all totals into one table, with wider bins if there are too many."""
        import polars as pl

        if self._pending:
            parts = [*([] if self._merged is None else [self._merged]), *self._pending]
            self._pending, self._pending_rows = [], 0
            self._merged = _grouped(pl.concat(parts))
        while self._merged is not None and self._is_too_large(self._merged):
            self._merged = self._widened(self._merged)
        return self._merged

    def _widened(self, frame: DataFrame) -> DataFrame:
        import polars as pl

        ratio = _WIDTHS_NS[self._width + 1] // self.width_ns
        self._width += 1
        return _grouped(frame.with_columns(pl.col("bin").floordiv(ratio)))

    def _spread(self, frame: DataFrame) -> int:
        """Return the number of bins between most exchanges, ignoring outliers of wrong clocks."""
        import polars as pl

        counts = frame.filter(pl.col("dimension") == 0).group_by("bin").agg(pl.col("count").sum())
        counts = counts.sort("bin")
        share = counts["count"].cum_sum() / counts["count"].sum()
        middle: list[int] = counts.filter((share >= 0.01) & (share <= 0.99))["bin"].to_list()
        return middle[-1] - middle[0] + 1 if middle else 1

    def _is_too_large(self, frame: DataFrame) -> bool:
        bins = frame.filter(frame["dimension"] == 0)["bin"].n_unique()
        is_large = bins > self._max_bins or frame.height > _MAX_ROWS
        return is_large and self._width + 1 < len(_WIDTHS_NS)


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


def _grouped(frame: DataFrame) -> DataFrame:
    import polars as pl

    sums = [pl.col(name).sum() for name in _SUMS]
    return frame.group_by(_KEYS).agg(*sums, pl.col("max_ns").max())


def _with_percentiles(frame: DataFrame) -> DataFrame:
    """Return a row for each label and bin, with percentiles in place of buckets."""
    import polars as pl

    place = ("label", "bin")
    sums = [pl.col(name).sum() for name in _SUMS]
    out = frame.group_by(place).agg(*sums, pl.col("max_ns").max())
    ranked = (
        frame.filter(pl.col("bucket") != _NO_LATENCY)
        .sort("bucket")
        .with_columns(
            pl.col("count").cum_sum().over(place).alias("rank"),
            pl.col("count").sum().over(place).alias("all"),
        )
    )
    for percent in PERCENTS:
        wanted = (pl.col("all") * percent + 99) // 100
        middle = 2.0 ** ((pl.col("bucket") + 0.5) / _BUCKETS_PER_DOUBLING)
        found = (
            ranked.filter(pl.col("rank") >= wanted)
            .group_by(place)
            .agg(pl.col("bucket").min())
            .select(*place, middle.cast(pl.Int64).alias(f"p{percent}_ns"))
        )
        out = out.join(found, on=place, how="left")
    names = [f"p{percent}_ns" for percent in PERCENTS]
    # The middle of a bucket may exceed its highest value.
    return out.with_columns(
        pl.when(pl.col("max_ns") < 0)
        .then(None)
        .otherwise(pl.min_horizontal(name, "max_ns"))
        .alias(name)
        for name in (*names, "max_ns")
    )
