"""The report of `stats`: tables of what each API, client, topic and broker did, and the capture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

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
"""Section -> its heading, and the columns that each of its rows has."""

HEALTH = ("packets", "connections", "kafka_connections", "gaps", "skipped_bytes", "problems")
"""What is told of the capture; more may be given and is told after these."""


def report(
    sections: Mapping[str, Sequence[Mapping[str, Any]]],
    health: Mapping[str, int],
    *,
    terminal_width: int | None = None,
) -> list[str]:
    """
    Return the lines of the report.

    Args:
        sections: By the keys of `SECTIONS`, the rows in the order in which they are to stand; a
            latency is None where nothing was answered. Sections without rows are left out.
        health: The capture itself, by the names of `HEALTH`; those that are missing are left out.
        terminal_width: Where the output is a terminal.
    """
    lines: list[str] = []
    for key, (heading, columns) in SECTIONS.items():
        rows = sections.get(key)
        if rows:
            lines += [heading, *table_lines(rows, columns, terminal_width=terminal_width), ""]
    return [*lines, "Capture", *_health_lines(health)]


def _health_lines(health: Mapping[str, int]) -> list[str]:
    names = [name for name in HEALTH if name in health]
    names += [name for name in health if name not in HEALTH]
    label = max((len(name) for name in names), default=0)
    value = max((len(f"{health[name]:,}") for name in names), default=0)
    return [f"{name.replace('_', ' '):<{label}}  {health[name]:>{value},}" for name in names]
