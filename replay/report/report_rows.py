"""The rows of a report, in sections, for programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from replay.model.row import Row
from replay.options.difference_baseline import (
    BY_FILE,
    BY_GAP,
    BY_PROFILE,
    BY_UPGRADE,
    DifferenceKey,
)
from replay.report.report_words import verdict_line
from replay.report.results import Results

SECTIONS: Mapping[str, Callable[[Results], Iterable[Row]]] = {
    "summary": lambda report: [{"verdict": verdict_line(report), **report.summary()}],
    "about": lambda report: [report.about.row()],
    "api": lambda report: report.api_rows(),
    "copy": lambda report: report.copy_rows(),
    "trial": lambda report: report.trials,
    "limit": lambda report: report.limit_rows(),
    "left_out": lambda report: report.left_out_rows(),
    "unsupported": lambda report: report.unsupported.rows(),
    "not_judged": lambda report: report.not_judged_rows(),
    "failure": lambda report: report.failure_rows(),
    "left_behind": lambda report: report.left_behind_rows(),
    "not_balanced": lambda report: report.unbalanced_rows(),
    "version": lambda report: report.version_rows(),
    "change": lambda report: report.change_rows(),
    "ignored": lambda report: report.ignored_rows(),
    "reason": lambda report: report.reason_rows(),
    "upgrade": lambda report: fields_accepted_by(report, BY_UPGRADE),
    "incomplete": lambda report: fields_accepted_by(report, BY_GAP),
    "accepted": lambda report: fields_accepted_by(report, BY_FILE),
    "documented": lambda report: documented_fields(report),
    "stale": lambda report: report.stale_rows(),
    "field": lambda report: fields_accepted_by(report),
    "connection": lambda report: report.connection_rows(),
    "latency": lambda report: report.latency_rows(),
    "shared_log": lambda report: report.shared_logs,
    "equivalent": lambda report: report.equivalents(),
    "difference": lambda report: report.differences(),
}
"""Sections of the report, in their order."""


def sections_of(report: Results) -> Iterator[tuple[str, Iterable[Row]]]:
    """Yield the name and the rows of each section."""
    for name, rows in SECTIONS.items():
        yield name, rows(report)


def fields_accepted_by(report: Results, accepted: str = "") -> list[Row]:
    """Return the differing fields that `accepted` accepts; by default those not accepted."""
    return [row for row in report.field_rows() if row["accepted"] == accepted]


def documented_fields(report: Results) -> list[Row]:
    """Return the differing fields that a target profile documents, each with its source."""
    profile = report.criteria.accepted.profile
    rows = fields_accepted_by(report, BY_PROFILE)
    keys = [DifferenceKey.shown_as(row["field"], row["errors"]) for row in rows]
    return [
        {**row, "source": profile.source_of(key.pattern, key[1:])}
        for row, key in zip(rows, keys, strict=True)
    ]
