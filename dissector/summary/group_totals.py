"""Totals of groups of exchanges: counts, latencies, bytes, errors by name, sizes, connections."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dissector.engine.tables.column_types import Coded, Columns, Integers, Milliseconds, distinct
from dissector.engine.tables.exchange_table import NONE, Ints
from dissector.request_log.log_accounts import DURATIONS
from dissector.summary.percentiles import Latencies

PERCENTS = (50, 95, 99)

MEASURES: Mapping[str, tuple[str, ...]] = {
    "counts": ("count", "errors", "unanswered"),
    "latencies": ("min_ms", *(f"p{percent}_ms" for percent in PERCENTS), "max_ms"),
    "traffic": ("request_bytes", "response_bytes"),
    "bytes": ("bytes",),
    "connections": ("connections",),
    "sizes": tuple(
        f"{side}_{name}_bytes" for side in ("request", "response") for name in ("p50", "p99", "max")
    ),
    "error_names": ("errors_by_name",),
    "waits": tuple(
        f"{part}_p{percent}_ms" for part in ("network", "server") for percent in PERCENTS
    ),
    "broker_times": tuple(
        f"{name.removesuffix('_ms')}_{kind}_ms" for name in DURATIONS for kind in ("mean", "p95")
    ),
}
"""Each measure, and its columns."""

WAITS = ("network_ms", "server_ms")
"""The parts of the latency."""


@dataclass(slots=True)
class GroupTotals:
    """
    The totals of one group; a row of a report.

    There may be as many groups as exchanges: None for measures that a group lacks.
    """

    sums: list[int] = field(default_factory=lambda: [0] * 6)
    latencies: Latencies | None = None
    sizes: tuple[Latencies, Latencies] | None = None
    error_names: Counter[str] | None = None
    connections: set[int] | None = None
    broker_times: tuple[Latencies, ...] | None = None
    waits: tuple[Latencies, ...] | None = None

    @property
    def count(self) -> int:
        """Number of exchanges."""
        return self.sums[0]

    def row(self, measures: Sequence[str]) -> dict[str, Any]:
        """Return the columns of some measures."""
        return {
            column: value
            for measure in measures
            for column, value in zip(MEASURES[measure], self._values(measure), strict=True)
        }

    def _values(self, measure: str) -> Sequence[Any]:
        count, errors, unanswered, sized, request_bytes, response_bytes = self.sums
        match measure:
            case "counts":
                return count, errors, unanswered
            case "latencies":
                return _latencies(self.latencies or Latencies())
            case "traffic" | "bytes" if count and not sized:  # of request logs
                return [None] * len(MEASURES[measure])
            case "traffic":
                return request_bytes, response_bytes
            case "bytes":
                return (request_bytes + response_bytes,)
            case "connections":
                return (len(self.connections or ()),)
            case "sizes":
                sides = self.sizes or (Latencies(), Latencies())
                return [value for side in sides for value in _sizes(side)]
            case "waits":
                waits = self.waits or tuple(Latencies() for _ in WAITS)
                return [value for times in waits for value in _percentiles(times)]
            case "broker_times":
                parts = self.broker_times or tuple(Latencies() for _ in DURATIONS)
                return [value for times in parts for value in _mean_and_p95(times)]
            case _:
                names = sorted(
                    (self.error_names or {}).items(), key=lambda each: (-each[1], each[0])
                )
                return (dict(names),)


def _latencies(times: Latencies) -> Sequence[float | None]:
    if not times.count:
        return [None] * (2 + len(PERCENTS))
    return [times.min_ns / 1e6, *_percentiles(times), times.max_ns / 1e6]


def _percentiles(times: Latencies) -> Sequence[float | None]:
    if not times.count:
        return [None] * len(PERCENTS)
    return [times.percentile(percent) / 1e6 for percent in PERCENTS]


def _mean_and_p95(times: Latencies) -> Sequence[float | None]:
    if not times.count:
        return None, None
    return times.sum_ns / times.count / 1e6, times.percentile(95) / 1e6


def _sizes(sizes: Latencies) -> Sequence[int | None]:
    if not sizes.count:
        return [None] * 3
    return [sizes.percentile(50), sizes.percentile(99), sizes.max_ns]


class MeasuredRows:
    """The columns of `pairs` as numbers, for totals of groups."""

    def __init__(self, columns: Columns) -> None:
        errors, connection, latency = (
            columns[name] for name in ("errors", "connection", "latency_ms")
        )
        assert isinstance(errors, Coded)
        assert isinstance(connection, Coded)
        assert isinstance(latency, Milliseconds)
        self._errors, self._connections = errors, connection
        self._latency_ns = latency.values_ns
        waits = [columns.get(name) for name in WAITS]
        self._waits_ns = [each.values_ns for each in waits if isinstance(each, Milliseconds)]
        accounts = [columns.get(name) for name in DURATIONS]
        self._broker_ns = [each.values_ns for each in accounts if isinstance(each, Milliseconds)]
        self._sizes = [_integers(columns[f"{side}_bytes"]) for side in ("request", "response")]
        unanswered = per_value(columns["status"], lambda status: status == "unanswered")
        known = [size != NONE for size in self._sizes]
        sizes = [np.where(size == NONE, 0, size) for size in self._sizes]
        sized = (known[0] | known[1]).astype(np.int64)
        self._sums = [per_value(errors, bool), unanswered, sized, *sizes]

    def add_to(
        self, totals: Sequence[GroupTotals], codes: Ints, rows: Ints, measures: Sequence[str]
    ) -> None:
        """
        Add rows to groups.

        Args:
            totals: The groups.
            codes: Of each row, the index of its group.
            rows: The rows.
            measures: The exchanges to add.
        """
        if not len(codes):
            return
        order = np.argsort(codes, kind="stable")
        codes, rows = codes[order], rows[order]
        starts = np.flatnonzero(np.diff(codes, prepend=-1))
        groups = [totals[code] for code in codes[starts].tolist()]
        counts = np.diff(starts, append=len(codes))
        sums = [counts, *(np.add.reduceat(each[rows], starts) for each in self._sums)]
        for group, values in zip(groups, np.stack(sums, axis=1).tolist(), strict=True):
            group.sums = [one + other for one, other in zip(group.sums, values, strict=True)]
        if "latencies" in measures:
            for group, values in zip(groups, _split(self._latency_ns, rows, starts), strict=True):
                group.latencies = group.latencies or Latencies()
                group.latencies.add(values[values != NONE])
        if "sizes" in measures:
            self._add_sizes(groups, rows, starts)
        if "broker_times" in measures and self._broker_ns:
            self._add_broker_times(groups, rows, starts)
        if "waits" in measures and len(self._waits_ns) == len(WAITS):
            self._add_waits(groups, rows, starts)
        if "error_names" in measures:
            self._add_error_names(totals, codes, rows)
        if "connections" in measures:
            column = self._connections
            for code, value, _ in _pairs(codes, column.codes[rows], len(column.values)):
                group = totals[code]
                if group.connections is None:
                    group.connections = set()
                group.connections.add(column.values[value])

    def _add_sizes(self, groups: Sequence[GroupTotals], rows: Ints, starts: Ints) -> None:
        sides = [_split(size, rows, starts) for size in self._sizes]
        for group, *values in zip(groups, *sides, strict=True):
            group.sizes = group.sizes or (Latencies(), Latencies())
            for sizes, of_side in zip(group.sizes, values, strict=True):
                sizes.add(of_side[of_side != NONE])

    def _add_waits(self, groups: Sequence[GroupTotals], rows: Ints, starts: Ints) -> None:
        parts = [_split(column, rows, starts) for column in self._waits_ns]
        for group, *values in zip(groups, *parts, strict=True):
            group.waits = group.waits or tuple(Latencies() for _ in WAITS)
            for times, found in zip(group.waits, values, strict=True):
                times.add(found[found != NONE])

    def _add_broker_times(self, groups: Sequence[GroupTotals], rows: Ints, starts: Ints) -> None:
        parts = [_split(column, rows, starts) for column in self._broker_ns]
        for group, *values in zip(groups, *parts, strict=True):
            group.broker_times = group.broker_times or tuple(Latencies() for _ in DURATIONS)
            for times, found in zip(group.broker_times, values, strict=True):
                times.add(found[found != NONE])

    def _add_error_names(self, totals: Sequence[GroupTotals], codes: Ints, rows: Ints) -> None:
        failed = self._sums[0][rows] != 0
        lists = self._errors
        for code, value, count in _pairs(
            codes[failed], lists.codes[rows][failed], len(lists.values)
        ):
            if totals[code].error_names is None:
                totals[code].error_names = Counter()
            names = totals[code].error_names
            assert names is not None
            for name in lists.values[value]:
                names[name] += count


def _split(values: Ints, rows: Ints, starts: Ints) -> list[Ints]:
    return np.split(values[rows], starts[1:])


def _pairs(codes: Ints, others: Ints, base: int) -> list[tuple[int, int, int]]:
    """Return the distinct pairs of two codes, with their counts; `base` is above all `others`."""
    if not len(codes):
        return []
    which, found = distinct(codes * base + others)
    counts = np.bincount(which, minlength=len(found)).tolist()
    return [
        (*divmod(pair, base), count) for pair, count in zip(found.tolist(), counts, strict=True)
    ]


def per_value(column: Any, number: Callable[[Any], int]) -> Ints:
    """Return a number for each row, by its value; values are never null."""
    numbers: Ints = np.array([number(value) for value in column.values], np.int64)
    of_rows: Ints = numbers[column.codes]
    return of_rows


def _integers(column: Any) -> Ints:
    assert isinstance(column, Integers)
    return column.values
