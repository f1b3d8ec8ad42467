"""`kafkashark stats`: response times and errors, per API, client, topic and broker."""

from __future__ import annotations

from typing import Annotated

import typer

from dissector.cli import options
from dissector.cli.live_options import accepts_live
from dissector.cli.output import terminal_width
from dissector.cli.refreshed_output import RefreshedOutput
from dissector.engine.reading.statistics import Statistics, health
from dissector.view.tables.statistics_report import report as report_lines
from dissector.view.text.value_text import json_text

FORMATS = ("table", "ndjson")


@accepts_live
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
    interval: Annotated[
        float | None,
        typer.Option(
            "--interval",
            metavar="S",
            min=0.1,
            help="Print the report so far every S seconds; on a terminal in place.",
        ),
    ] = None,
    top: Annotated[
        int | None,
        typer.Option("--top", metavar="N", min=1, help="Only the first N rows of each section."),
    ] = None,
) -> None:
    """Print response times and errors per API, client, topic, broker; and the capture's health.

    Live, refreshed every two seconds: kafkashark stats -i eth0 --interval 2 --top 10
    """
    options.check_choice(form, FORMATS, "-T")
    source = options.source(
        captures, filter_text, ports, max_frame_bytes, output, jobs, keylogs=keylogs
    )
    report = Statistics()
    screen = RefreshedOutput(output, interval)
    if interval is not None:
        source.capture.options.jobs = 1  # the report must not see a reading that goes on

    def lines() -> list[str]:
        sections = {name: rows[:top] for name, rows in report.sections().items()}
        state = health(source.capture.reading, source.problems + report.problems)
        if form == "table":
            return report_lines(sections, state, terminal_width=terminal_width(output))
        rows = [{"section": name, **row} for name, rows in sections.items() for row in rows]
        return [json_text(row) for row in [*rows, {"section": "capture", **state}]]

    source.after_window = lambda: screen.refresh(lines)
    for part in source.parts():
        report.add(part)
    screen.write_last(lines())
