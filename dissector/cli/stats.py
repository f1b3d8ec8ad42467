"""`kafkashark stats`: response times and errors, per API, client, topic and broker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from dissector.cli import options
from dissector.cli.output import terminal_width, write_lines
from dissector.engine.exchange import Exchange
from dissector.engine.stats import health, statistics
from dissector.view.stats import report
from dissector.view.values import json_text

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
) -> None:
    """Print response times and errors per API, client, topic, broker; and the capture's health."""
    options.one_of(form, FORMATS, "-T")
    source = options.source(captures, filter_text, ports, max_frame_bytes, output)
    problems = [0]
    sections = statistics(_counting(source.exchanges(), problems))
    state = health(source.capture.reading, source.problems + problems[0])
    if form == "table":
        lines = report(sections, state, terminal_width=terminal_width(output))
    else:
        rows = [{"section": name, **row} for name, rows in sections.items() for row in rows]
        lines = [json_text(row) for row in [*rows, {"section": "capture", **state}]]
    write_lines(lines, output)


def _counting(exchanges: Iterator[Exchange], problems: list[int]) -> Iterator[Exchange]:
    """Count the problems of the exchanges that go by."""
    for exchange in exchanges:
        problems[0] += len(exchange.problems)
        yield exchange
