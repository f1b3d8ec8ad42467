"""`kafkashark stats`: response times and errors, per API, client, topic and broker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from dissector.cli import options
from dissector.cli.output import terminal_width, write_lines
from dissector.cli.presentation import table_options
from dissector.cli.sorting import SortKey, sort_keys, sorted_rows
from dissector.column_catalogue import STATISTICS, names
from dissector.engine.reading.statistics import Statistics, health
from dissector.engine.tables.frames import Row
from dissector.view.tables.column_fitting import Layout
from dissector.view.tables.statistics_report import NAMES
from dissector.view.tables.statistics_report import report as report_lines
from dissector.view.text.value_text import json_text

FORMATS = ("table", "ndjson")

PRIORITY = (*NAMES, "count", "errors", "p50_ms", "p95_ms", "p99_ms", "max_ms", "unanswered")
"""The columns that a narrow terminal shows first."""


def stats(
    captures: options.Captures,
    filter_text: options.FilterText = None,
    form: Annotated[
        str, typer.Option("-T", "--format", metavar="FORMAT", help="|".join(FORMATS))
    ] = "table",
    output: options.Output = None,
    columns: table_options.ColumnList = None,
    fields: table_options.ColumnNames = None,
    sort: options.Sort = None,
    limit: table_options.Limit = None,
    color: table_options.Color = "auto",
    list_columns: table_options.ListColumns = False,
    list_fields: table_options.ListFields = False,
    ports: options.Ports = None,
    max_frame_bytes: options.MaxFrame = options.MAX_FRAME,
    keylogs: options.KeyLogs = None,
    schemas: options.Schemas = None,
    jobs: options.Jobs = None,
) -> None:
    """Print response times and errors per API, client, topic, broker; and the capture's health."""
    options.check_choice(form, FORMATS, "-T")
    source = options.source(
        captures, filter_text, ports, max_frame_bytes, output, jobs, keylogs=keylogs
    )
    chosen = table_options.chosen_columns(columns, fields)
    table_options.check_columns(chosen, STATISTICS, "stats")
    keys = sort_keys(sort, names(STATISTICS)) if sort is not None else []
    left_out: dict[str, None] = {}
    has_color = table_options.has_color(color, output)
    layout = Layout(
        PRIORITY, bool(chosen), has_color, lambda each: left_out.update(dict.fromkeys(each))
    )
    report = Statistics()
    for part in source.parts():
        report.add(part)
    sections = {name: arranged(rows, keys, limit) for name, rows in report.sections().items()}
    state = health(source.capture.reading, source.problems + report.problems)
    if form == "table":
        lines = report_lines(
            sections, state, columns=chosen, terminal_width=terminal_width(output), layout=layout
        )
    else:
        kept = {"section", *NAMES, *(chosen or names(STATISTICS))}
        rows = [
            {key: value for key, value in {"section": name, **row}.items() if key in kept}
            for name, rows in sections.items()
            for row in rows
        ]
        lines = [json_text(row) for row in [*rows, {"section": "capture", **state}]]
    if left_out:
        table_options.report_left_out(left_out)
    write_lines(lines, output)


def arranged(rows: Sequence[Row], keys: Sequence[SortKey], limit: int | None) -> Sequence[Row]:
    """Return the first rows of a section, sorted by those of the columns that it has."""
    known = [key for key in keys if rows and key.name in rows[0]]
    return (sorted_rows(rows, known) if known else rows)[:limit]
