"""The report of `stats`: tables per API, client, topic and broker, and counters of the capture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dissector.view.tables.column_fitting import Layout
from dissector.view.tables.row_formats import table_lines

_LATENCY = ("min_ms", "p50_ms", "p95_ms", "p99_ms", "max_ms")
_COUNTS = ("count", "errors", "unanswered")
_BYTES = ("request_bytes", "response_bytes")

SECTIONS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "apis": ("Per API", ("api", *_COUNTS, *_LATENCY, *_BYTES)),
    "clients": ("Per client", ("client_id", "client", *_COUNTS, *_LATENCY, *_BYTES)),
    "topics": ("Per topic", ("topic", *_COUNTS, *_LATENCY, *_BYTES)),
    "brokers": ("Per broker", ("broker", *_COUNTS, *_LATENCY, *_BYTES)),
}
"""Section -> its heading, and the columns of its rows."""

NAMES = ("api", "client_id", "client", "topic", "broker")
"""Columns that name a row, and are always shown."""

ERRORS_BY_NAME = "errors_by_name"

HEALTH = ("packets", "connections", "kafka_connections", "gaps", "skipped_bytes", "problems")
"""Counters of the capture that are reported first; others follow."""


def report(
    sections: Mapping[str, Sequence[Mapping[str, Any]]],
    health: Mapping[str, int],
    *,
    terminal_width: int | None = None,
    layout: Layout | None = None,
    tables: Mapping[str, tuple[str, tuple[str, ...]]] = SECTIONS,
) -> list[str]:
    """
    Return the lines of the report.

    Args:
        sections: Rows by the keys of `SECTIONS`, in order; a latency is None without a response.
            Sections without rows are omitted.
        health: Counters of the capture, by the names of `HEALTH`; missing ones are omitted.
        terminal_width: Width of the terminal, if any.
        layout: Fitting of the columns into that width.
        tables: The sections, as in `SECTIONS`.
    """
    lines = section_lines(sections, tables, terminal_width, layout)
    return [*lines, "Capture", *_health_lines(health)]


def section_lines(
    sections: Mapping[str, Sequence[Mapping[str, Any]]],
    tables: Mapping[str, tuple[str, tuple[str, ...]]],
    terminal_width: int | None,
    layout: Layout | None = None,
) -> list[str]:
    """Return the lines of sections, each followed by an empty line; see `report`."""
    lines: list[str] = []
    for key, (heading, every) in tables.items():
        rows = [_shown(row) for row in sections.get(key, ())]
        if rows:
            table = table_lines(rows, every, terminal_width=terminal_width, layout=layout)
            lines += [heading, *table, ""]
    return lines


def _shown(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a row with errors by name as a list of texts."""
    names = row.get(ERRORS_BY_NAME)
    if names is None:
        return row
    return {**row, ERRORS_BY_NAME: [f"{name} {count}" for name, count in names.items()]}


def _health_lines(health: Mapping[str, int]) -> list[str]:
    names = [name for name in HEALTH if name in health]
    names += [name for name in health if name not in HEALTH]
    label = max((len(name) for name in names), default=0)
    value = max((len(f"{health[name]:,}") for name in names), default=0)
    return [f"{name.replace('_', ' '):<{label}}  {health[name]:>{value},}" for name in names]
