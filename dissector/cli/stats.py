"""`kafkashark stats`: response times and errors by API, client, topic and broker, or any keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import typer

from dissector.cli import options
from dissector.cli.output import terminal_width, write_lines
from dissector.engine.reading.group_keys import KEYS
from dissector.engine.reading.statistics import GROUPS, Grouping, Statistics, health
from dissector.summary.sections import chosen_sections
from dissector.summary.version_offers import VersionOffers
from dissector.view.tables.statistics_report import SECTIONS
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
    by: Annotated[
        list[str] | None,
        typer.Option(
            "--by",
            metavar="KEY[,KEY]",
            help=f"A table by any keys, with errors by name: {'|'.join(KEYS)}. May be given more "
            "than once. Exchanges without a topic or error are not in tables by these.",
        ),
    ] = None,
    topics: Annotated[
        bool, typer.Option("--topics", help="Users of each topic: APIs, versions, software.")
    ] = False,
    clients: Annotated[
        bool, typer.Option("--clients", help="Clients and their software, from ApiVersions.")
    ] = False,
    talkers: Annotated[
        bool, typer.Option("--talkers", help="Clients and brokers by bytes.")
    ] = False,
    sizes: Annotated[bool, typer.Option("--sizes", help="Sizes of messages by API.")] = False,
    ports: options.Ports = None,
    max_frame_bytes: options.MaxFrame = options.MAX_FRAME,
    keylogs: options.KeyLogs = None,
    schemas: options.Schemas = None,
    jobs: options.Jobs = None,
) -> None:
    """
    Print response times and errors per API, client, topic, broker; and the capture's health.

    Options for tables replace these four: kafkashark stats a.pcap --by minute,api --clients
    """
    options.check_choice(form, FORMATS, "-T")
    asked = {"topics": topics, "clients": clients, "talkers": talkers, "sizes": sizes}
    chosen = chosen_sections(by or [], [name for name, wanted in asked.items() if wanted])
    source = options.source(
        captures, filter_text, ports, max_frame_bytes, output, jobs, keylogs=keylogs
    )
    report = _new_report(source, {name: rows for name, (_, rows) in chosen.items()} or GROUPS)
    tables = {name: (title, rows.columns) for name, (title, rows) in chosen.items()} or SECTIONS

    def lines() -> list[str]:
        sections = report.sections()
        state = health(source.capture.reading, source.problems + report.problems)
        if form == "table":
            width = terminal_width(output)
            return report_lines(sections, state, terminal_width=width, tables=tables)
        rows = [{"section": name, **row} for name, rows in sections.items() for row in rows]
        return [json_text(row) for row in [*rows, {"section": "capture", **state}]]

    for part in source.parts():
        report.add(part)
    write_lines(lines(), output)


def _new_report(source: options.Source, groups: Mapping[str, Grouping]) -> Statistics:
    """Return an empty report, which knows the software of clients if it is asked for it."""
    if not any("software" in grouping.keys for grouping in groups.values()):
        return Statistics(groups)
    offers = VersionOffers(source.capture)
    source.observers.append(offers.observe)
    return Statistics(groups, offers.software_of)
