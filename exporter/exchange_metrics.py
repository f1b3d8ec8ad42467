"""Metrics of exchanges by API, topic, software of clients, and broker."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dissector.engine.tables.column_types import Columns, Integers, Milliseconds, row_count
from dissector.engine.tables.exchange_table import NONE, Ints
from dissector.summary.group_keys import SoftwareOf, group_rows
from dissector.summary.group_totals import per_value
from dissector.summary.matching_topics import MatchingTopics
from exporter.metric_families import (
    DIMENSIONS,
    ERROR_DIMENSIONS,
    LAST_EXCHANGE,
    SECOND_NS,
    Dimension,
    error_family,
    exchange_families,
)
from exporter.metric_series import FamilySamples, LabelRows, Sample, Series

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dissector.filter import Filter


class _Measured(NamedTuple):
    """Numbers of exchanges; NONE for unknown ones."""

    failed: Ints
    unanswered: Ints
    latency_ns: Ints
    request_bytes: Ints
    response_bytes: Ints

    @classmethod
    def of(cls, columns: Columns) -> _Measured:
        latency = columns["latency_ms"]
        assert isinstance(latency, Milliseconds)
        known = latency.values_ns != NONE
        return cls(
            per_value(columns["errors"], bool),
            per_value(columns["status"], lambda status: status == "unanswered"),
            # A histogram's sum must not decrease: a response before its request took no time.
            np.where(known, np.maximum(latency.values_ns, 0), NONE),
            _integers(columns, "request_bytes"),
            _integers(columns, "response_bytes"),
        )


class _DimensionMetrics:
    """The measures of one dimension."""

    def __init__(self, name: str, most: int) -> None:
        self._dimension = DIMENSIONS[name]
        self._labels = LabelRows(len(self._dimension.labels), most)
        families = exchange_families(name)
        self._exchanges, self._failed, self._unanswered, *measures = map(Series, families)
        self._measures = measures

    def add(self, columns: Columns, numbers: _Measured, software_of: SoftwareOf) -> None:
        found, rows = _rows(columns, self._dimension, self._labels, software_of)
        self._exchanges.count(rows)
        self._failed.count(rows[numbers.failed[found] != 0])
        self._unanswered.count(rows[numbers.unanswered[found] != 0])
        for series, values in zip(self._measures, numbers[2:], strict=True):
            of_rows = values[found]
            known = of_rows != NONE
            series.observe(rows[known], of_rows[known])

    def samples(self) -> Iterator[FamilySamples]:
        for each in (self._exchanges, self._failed, self._unanswered, *self._measures):
            yield FamilySamples(each.family, each.samples(self._labels.labels))


class ExchangeMetrics:
    """
    Adds up exchanges, window by window.

    Args:
        most: Maximum number of series of a family, beside the one of all others.
        software_of: Returns the software of a connection's client.
        chosen: The filter that exchanges passed: topics that it excludes have no series.
    """

    def __init__(self, most: int, software_of: SoftwareOf, chosen: Filter | None = None) -> None:
        self.problems = 0
        self._software_of = software_of
        self._topics = MatchingTopics(chosen)
        self._dimensions = [_DimensionMetrics(name, most) for name in DIMENSIONS]
        self._errors = [
            (each, LabelRows(len(each.labels), most), Series(error_family(name)))
            for name, each in ERROR_DIMENSIONS.items()
        ]
        self._last_ns = NONE

    def add(self, columns: Columns) -> None:
        """Add exchanges, by the columns of `pairs`."""
        if not row_count(columns):
            return
        columns = self._topics.of(columns)
        numbers = _Measured.of(columns)
        for dimension in self._dimensions:
            dimension.add(columns, numbers, self._software_of)
        for dimension_of_errors, labels, series in self._errors:
            series.count(_rows(columns, dimension_of_errors, labels, self._software_of)[1])
        self.problems += int(per_value(columns["problems"], len).sum())
        for side in ("request", "response"):
            times = _integers(columns, f"{side}_time_ns")
            self._last_ns = max(self._last_ns, int(times.max()))

    def samples(self) -> Iterator[FamilySamples]:
        """Yield all series."""
        for dimension in self._dimensions:
            yield from dimension.samples()
        for _, labels, series in self._errors:
            yield FamilySamples(series.family, series.samples(labels.labels))
        known = [] if self._last_ns == NONE else [Sample((), (self._last_ns // SECOND_NS,))]
        yield FamilySamples(LAST_EXCHANGE, known)


def _rows(
    columns: Columns, dimension: Dimension, labels: LabelRows, software_of: SoftwareOf
) -> tuple[Ints, Ints]:
    """Return rows of exchanges, and of each its row in the series."""
    found = group_rows(columns, dimension.keys, software_of)
    return found.rows, labels.rows_of(found.labels, found.codes)


def _integers(columns: Columns, name: str) -> Ints:
    column = columns[name]
    assert isinstance(column, Integers)
    return column.values
