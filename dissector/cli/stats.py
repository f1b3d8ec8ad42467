"""`kafkashark stats`: response times and errors, per API, client, topic and broker."""

from __future__ import annotations

from typing import Annotated

import typer

from dissector.cli import options
from dissector.cli.output import terminal_width, write_lines
from dissector.engine.reading.statistics import Statistics, health
from dissector.view.tables.statistics_report import report as report_lines
from dissector.view.text.value_text import json_text

FORMATS = ("table", "ndjson")


def stats(
    captures: options.Captures,
    filter_text: options.FilterText = None,
    form: Annotated[
        str, typer.Option("-T", "--format", metavar="FORMAT", help="|".join(FORMATS))
    ] = "table",
    output: options.Output = None,
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
    report = Statistics()
    for part in source.parts():
        report.add(part)
    sections = report.sections()
    state = health(source.capture.reading, source.problems + report.problems)
    if form == "table":
        lines = report_lines(sections, state, terminal_width=terminal_width(output))
    else:
        rows = [{"section": name, **row} for name, rows in sections.items() for row in rows]
        lines = [json_text(row) for row in [*rows, {"section": "capture", **state}]]
    write_lines(lines, output)
