"""Service response times and error counts, per API, client, topic and broker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dissector.engine.reading.percentiles import Latencies
from dissector.engine.tables.column_types import (
    Coded,
    Columns,
    Integers,
    Milliseconds,
    distinct,
    row_count,
)
from dissector.engine.tables.exchange_table import NONE, Ints
from dissector.engine.tables.frames import Row, RowBatch, escape_invalid_utf8

GROUPS: Mapping[str, tuple[str, ...]] = {
    "apis": ("api",),
    "clients": ("client_id", "client"),
    "topics": ("topic",),
    "brokers": ("broker",),
}
"""The key columns of each section of the report."""

Key = tuple[str | None, ...]

_PERCENTS = (50, 95, 99)


@dataclass(slots=True)
class _Group:
    """The totals of one row of the report."""

    count: int = 0
    errors: int = 0
    unanswered: int = 0
    request_bytes: int = 0
    response_bytes: int = 0
    latencies: Latencies = field(default_factory=Latencies)

    def row(self) -> dict[str, Any]:
        times = self.latencies
        percentiles = {
            f"p{percent}_ms": times.percentile(percent) / 1e6 if times.count else None
            for percent in _PERCENTS
        }
        return {
            "count": self.count,
            "errors": self.errors,
            "unanswered": self.unanswered,
            "min_ms": times.min_ns / 1e6 if times.count else None,
            **percentiles,
            "max_ms": times.max_ns / 1e6 if times.count else None,
            "request_bytes": self.request_bytes,
            "response_bytes": self.response_bytes,
        }


class Statistics:
    """
    A report on exchanges.

    Attributes:
        problems: How many problems they have.
    """

    def __init__(self) -> None:
        self.problems = 0
        self._groups: dict[str, dict[Key, _Group]] = {section: {} for section in GROUPS}

    def add(self, part: RowBatch) -> None:
        """Add exchanges: rows or columns of `pairs`."""
        columns = part if isinstance(part, Mapping) else _columns(list(part))
        if not row_count(columns):
            return
        facts = _NumericColumns(columns)
        self.problems += int(facts.problems.sum())
        for section, (codes, keys, rows) in facts.sections().items():
            self._add(self._groups[section], codes, keys, facts.of(rows))

    def sections(self) -> dict[str, list[dict[str, Any]]]:
        """
        Return the rows of each section, most exchanges first.

        An exchange on several topics counts for each; one without topics for none. Latencies are in
        milliseconds, over answered exchanges, with the nearest rank for percentiles; with more than
        `MAX_EXACT_VALUES` values in one row percentiles are right to half a thousandth.
        """
        return {
            section: [
                dict(zip(GROUPS[section], key, strict=True)) | group.row()
                for key, group in sorted(groups.items(), key=_order)
            ]
            for section, groups in self._groups.items()
        }

    def _add(
        self, groups: dict[Key, _Group], codes: Ints, keys: Sequence[Key], values: list[Ints]
    ) -> None:
        """Add values to groups; `codes` are the indices of the rows' keys."""
        if not len(codes):
            return
        order = np.argsort(codes, kind="stable")
        codes = codes[order]
        starts = np.flatnonzero(np.diff(codes, prepend=-1))
        *sums, latencies = (value[order] for value in values)
        totals = [np.add.reduceat(each, starts).tolist() for each in sums]
        counts = np.diff(starts, append=len(codes)).tolist()
        spans = np.split(latencies, starts[1:])
        for at, code in enumerate(codes[starts].tolist()):
            group = groups.setdefault(keys[code], _Group())
            group.count += counts[at]
            group.errors += totals[0][at]
            group.unanswered += totals[1][at]
            group.request_bytes += totals[2][at]
            group.response_bytes += totals[3][at]
            group.latencies.add(spans[at][spans[at] != NONE])


def _order(item: tuple[Key, _Group]) -> tuple[int, list[tuple[bool, str]]]:
    key, group = item
    return -group.count, [(part is None, part or "") for part in key]


class _NumericColumns:
    """The columns of `pairs` as numbers for a report."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self.problems = _per_value(columns["problems"], len)
        failed = _per_value(columns["errors"], bool)
        unanswered = _per_value(columns["status"], lambda status: status == "unanswered")
        sizes = [_or_zero(columns[f"{side}_bytes"]) for side in ("request", "response")]
        latency = columns["latency_ms"]
        assert isinstance(latency, Milliseconds)
        self._values = [failed, unanswered, *sizes, latency.values_ns]

    def of(self, rows: Ints | None) -> list[Ints]:
        """Return errors, unanswered, bytes and latencies of some rows, or of all."""
        return self._values if rows is None else [value[rows] for value in self._values]

    def sections(self) -> dict[str, tuple[Ints, list[Key], Ints | None]]:
        """Return for each section the codes of its rows, their keys, and which rows these are."""
        api, broker = self._coded("api"), self._coded("broker")
        return {
            "apis": (*_keyed(api), None),
            "clients": (*self._clients(), None),
            "topics": self._topics(),
            "brokers": (*_keyed(broker), None),
        }

    def _coded(self, name: str) -> Coded:
        column = self._columns[name]
        assert isinstance(column, Coded)
        return column

    def _clients(self) -> tuple[Ints, list[Key]]:
        """Return client id and address, without its port, as keys."""
        ids, id_keys = _keyed(self._coded("client_id"))
        ends, end_keys = _keyed(self._coded("client"))
        codes, pairs = distinct(ids * len(end_keys) + ends)
        split = [divmod(pair, len(end_keys)) for pair in pairs.tolist()]
        return codes, [
            (id_keys[one][0], (end_keys[other][0] or "").rpartition(":")[0]) for one, other in split
        ]

    def _topics(self) -> tuple[Ints, list[Key], Ints]:
        """Return the topics, each with its rows."""
        column = self._coded("topics")
        names: dict[str, int] = {}
        flat = [[names.setdefault(name, len(names)) for name in each] for each in column.values]
        sizes = np.array([len(each) for each in flat], np.int64)
        firsts = np.cumsum(sizes) - sizes
        every = np.array([number for each in flat for number in each], np.int64)
        rows = np.repeat(np.arange(len(column)), sizes[column.codes])
        codes = column.codes[rows]
        within = np.arange(len(rows)) - np.repeat(
            np.cumsum(sizes[column.codes]) - sizes[column.codes], sizes[column.codes]
        )
        return every[firsts[codes] + within], [(escape_invalid_utf8(name),) for name in names], rows


def _keyed(column: Coded) -> tuple[Ints, list[Key]]:
    """Return codes and keys; null is a key too."""
    codes = np.where(column.codes == NONE, len(column.values), column.codes)
    return codes, [*((escape_invalid_utf8(value),) for value in column.values), (None,)]


def _per_value(column: Any, number: Any) -> Ints:
    """Return a number for each row, by its value; values are never null."""
    numbers: Ints = np.array([int(number(value)) for value in column.values], np.int64)
    of_rows: Ints = numbers[column.codes]
    return of_rows


def _or_zero(column: Any) -> Ints:
    """Return integers, 0 for null."""
    values: Ints = column.values
    return np.where(values == NONE, 0, values)


def _columns(rows: list[Row]) -> Columns:
    """Return the columns that a report needs, from rows."""
    times = [(row["request_time_ns"], row["response_time_ns"]) for row in rows]
    latency = [NONE if None in pair else pair[1] - pair[0] for pair in times]
    coded = ("api", "client_id", "client", "broker", "status", "errors", "topics", "problems")
    sizes = ("request_bytes", "response_bytes")
    return {
        **{name: _coded([row[name] for row in rows]) for name in coded},
        **{name: Integers(_integers([row[name] for row in rows])) for name in sizes},
        "latency_ms": Milliseconds(np.array(latency, np.int64)),
    }


def _coded(values: Iterable[Any]) -> Coded:
    numbers: dict[Any, int] = {}
    codes = [
        numbers.setdefault(tuple(value) if isinstance(value, list) else value, len(numbers))
        for value in values
    ]
    return Coded(np.array(codes, np.int64), list(numbers))


def _integers(values: Iterable[int | None]) -> Ints:
    return np.array([NONE if value is None else value for value in values], np.int64)


def health(reading: Any, problems: int) -> dict[str, int]:
    """Return how complete the capture is: what is missing, and what was left out."""
    connections = reading.streams.connections
    states = list(reading.correlator)
    sides = [side for connection in connections for side in connection.sides]
    kafka = [state for state in states if state.speaks == "kafka"]
    out = {
        "packets": reading.packets,
        "connections": len(connections),
        "kafka_connections": len(kafka),
        "tls_connections": len(reading.decryption),
        "decrypted_connections": reading.decryption.decrypted_count,
        "gaps": sum(side.gaps for side in sides),
        "gap_bytes": sum(side.gap_bytes for side in sides),
        "cut_bytes": sum(side.cut_bytes for side in sides),
        "retransmitted_bytes": sum(side.retransmitted_bytes for side in sides),
        "skipped_bytes": sum(sum(state.skipped) for state in kafka),
        "problems": problems,
    }
    passed_over = {
        f"packets passed over: {reason}": n for reason, n in reading.source.passed_over.items()
    }
    return out | passed_over
