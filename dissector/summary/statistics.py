"""Totals of exchanges in groups: per API, client, topic and broker, or by any keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from heapq import nsmallest
from typing import TYPE_CHECKING, Any

import numpy as np

from dissector.engine.tables.column_types import Columns, row_count
from dissector.summary.group_keys import (
    Label,
    Software,
    SoftwareOf,
    group_rows,
    key_columns,
)
from dissector.summary.group_totals import MEASURES, GroupTotals, MeasuredRows, per_value
from dissector.summary.key_columns import interval_ns
from dissector.summary.matching_topics import MatchingTopics

if TYPE_CHECKING:
    from dissector.filter import Filter


@dataclass(frozen=True, slots=True)
class Grouping:
    """
    A section of the report.

    Attributes:
        keys: Names of `KEYS`.
        measures: Names of `MEASURES`.
    """

    keys: tuple[str, ...]
    measures: tuple[str, ...] = ("counts", "latencies", "traffic")

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of its rows, in order."""
        values = (column for measure in self.measures for column in MEASURES[measure])
        return (*key_columns(self.keys), *values)

    def rows(
        self, totals: Mapping[Label, GroupTotals], most: int | None = None
    ) -> list[dict[str, Any]]:
        """
        Return the rows in order: by time, by bytes, or by the number of exchanges.

        Args:
            totals: The totals of each group.
            most: Maximum number of rows; None for all.
        """
        names = key_columns(self.keys)
        count = len(totals) if most is None else most
        return [
            dict(zip(names, label, strict=True)) | group.row(self.measures)
            for label, group in nsmallest(count, totals.items(), key=self._order)
        ]

    def _order(self, item: tuple[Label, GroupTotals]) -> tuple[Any, ...]:
        label, group = item
        texts = [(part is None, part if isinstance(part, int) else part or "") for part in label]
        times = texts[:1] if self.keys and interval_ns(self.keys[0]) is not None else []
        weight = sum(group.sums[-2:]) if "bytes" in self.measures else group.count
        return times, -weight, texts


GROUPS: Mapping[str, Grouping] = {
    "apis": Grouping(("api",)),
    "clients": Grouping(("client",)),
    "topics": Grouping(("topic",)),
    "brokers": Grouping(("broker",)),
}
"""The sections of the report by default."""


def _unknown_software(connection: int) -> Software:
    return None, None


class Statistics:
    """
    A report on exchanges.

    Attributes:
        problems: Number of problems.
    """

    def __init__(
        self,
        groups: Mapping[str, Grouping] = GROUPS,
        software_of: SoftwareOf = _unknown_software,
        chosen: Filter | None = None,
    ) -> None:
        """
        Begin a report.

        Args:
            groups: Its sections.
            software_of: Called for connections of added exchanges.
            chosen: The filter that they passed: topics that it excludes have no rows.
        """
        self.problems = 0
        self._topics = MatchingTopics(chosen)
        self._groupings = groups
        self._software_of = software_of
        self._totals: dict[str, dict[Label, GroupTotals]] = {section: {} for section in groups}

    def add(self, columns: Columns) -> None:
        """Add exchanges, by the columns of `pairs`."""
        if not row_count(columns):
            return
        columns = self._topics.of(columns)
        measured = MeasuredRows(columns)
        self.problems += int(per_value(columns["problems"], len).sum())
        for section, grouping in self._groupings.items():
            found = group_rows(columns, grouping.keys, self._software_of)
            totals = self._totals[section]
            used = np.bincount(found.codes, minlength=len(found.labels)).tolist()
            unused = GroupTotals()
            groups = [
                (totals.get(label) or totals.setdefault(label, GroupTotals())) if times else unused
                for label, times in zip(found.labels, used, strict=True)
            ]
            measured.add_to(groups, found.codes, found.rows, grouping.measures)

    def sections(self) -> dict[str, list[dict[str, Any]]]:
        """
        Return the rows of each section, most exchanges first.

        An exchange on several topics counts for each; one without topics for none; the same holds
        for errors. Latencies are in milliseconds, over answered exchanges, with the nearest rank
        for percentiles; with more than `MAX_EXACT_VALUES` values in one row percentiles are right
        to half a thousandth.
        """
        return {
            section: grouping.rows(self._totals[section])
            for section, grouping in self._groupings.items()
        }

    def first_rows(self, section: str, most: int) -> tuple[list[dict[str, Any]], int]:
        """Return the first rows of a section, and the number of all."""
        totals = self._totals[section]
        return self._groupings[section].rows(totals, most), len(totals)


def health(reading: Any, problems: int) -> dict[str, int]:
    """Return how complete the capture is: gaps and omissions."""
    connections = reading.streams.connections
    lost = "gaps", "gap_bytes", "cut_bytes", "retransmitted_bytes"
    out = {
        "packets": reading.packets,
        "connections": len(connections),
        "kafka_connections": reading.correlator.spoken()["kafka"],
        "one_sided_connections": connections.one_sided(),
        "tls_connections": len(reading.decryption),
        "decrypted_connections": reading.decryption.decrypted_count,
        **dict(zip(lost, connections.sums(*lost), strict=True)),
        "skipped_bytes": reading.correlator.skipped_bytes(),
        "problems": problems,
    }
    passed_over = {
        f"packets passed over: {reason}": n for reason, n in reading.source.passed_over.items()
    }
    return out | passed_over
