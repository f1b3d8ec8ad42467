"""`kafkashark stats`: response times and errors by API, client, topic and broker, or any keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from dissector.cli import options
from dissector.cli.live_options import accepts_live
from dissector.cli.output import terminal_width
from dissector.cli.parsing.parameters import Option
from dissector.cli.presentation import table_options
from dissector.cli.presentation.completion import complete_words
from dissector.cli.presentation.section_view import SectionOptions, SectionView, Tables
from dissector.cli.refreshed_output import RefreshedOutput
from dissector.summary.group_keys import KEYS
from dissector.summary.sections import chosen_sections
from dissector.summary.statistics import GROUPS, Grouping, Statistics, health
from dissector.summary.version_offers import VersionOffers
from dissector.view.tables.statistics_report import NAMES, SECTIONS
from dissector.view.tables.statistics_report import report as report_lines
from dissector.view.text.value_text import json_text

FORMATS = ("table", "ndjson")

PRIORITY = (
    *dict.fromkeys((*NAMES, *KEYS)),
    "count",
    "errors",
    "p50_ms",
    "p95_ms",
    "p99_ms",
    "max_ms",
    "unanswered",
)
"""The columns that a narrow terminal shows first."""


@accepts_live
def stats(
    captures: options.Captures,
    filter_text: options.FilterText = None,
    form: Annotated[str, options.format_option(FORMATS)] = "table",
    output: options.Output = None,
    columns: table_options.ColumnList = None,
    fields: table_options.ColumnNames = None,
    sort: options.Sort = None,
    limit: Annotated[
        int | None,
        Option(
            *("-c", "--limit", "--top"),
            metavar="N",
            min=1,
            help="Only the first N rows of each section.",
        ),
    ] = None,
    color: table_options.Color = "auto",
    list_columns: table_options.ListColumns = False,
    list_fields: table_options.ListFields = False,
    by: Annotated[
        list[str] | None,
        Option(
            "--by",
            metavar="KEY[,KEY]",
            autocompletion=complete_words(lambda: KEYS),
            help=f"A table by any keys, with errors by name: {'|'.join(KEYS)}. May be given more "
            "than once. Exchanges without a topic or error are not in tables by these.",
        ),
    ] = None,
    topics: Annotated[
        bool, Option("--topics", help="Users of each topic: APIs, versions, software.")
    ] = False,
    clients: Annotated[
        bool, Option("--clients", help="Clients and their software, from ApiVersions.")
    ] = False,
    talkers: Annotated[bool, Option("--talkers", help="Clients and brokers by bytes.")] = False,
    sizes: Annotated[bool, Option("--sizes", help="Sizes of messages by API.")] = False,
    ports: options.Ports = None,
    max_frame_bytes: options.MaxFrame = options.MAX_FRAME,
    keylogs: options.KeyLogs = None,
    decode_as: options.DecodeAs = None,
    keep_copies: options.KeepCopies = False,
    schemas: options.Schemas = None,
    jobs: options.Jobs = None,
    interval: Annotated[
        float | None,
        Option(
            "--interval",
            metavar="S",
            min=0.1,
            help="Print the report so far every S seconds; on a terminal in place.",
        ),
    ] = None,
) -> None:
    """
    Print response times and errors per API, client, topic, broker; and the capture's health.

    Options for tables replace these four: kafkashark stats a.pcap --by minute,api --clients
    Live, refreshed every two seconds: kafkashark stats -i eth0 --interval 2 --top 10
    """
    options.check_choice(form, FORMATS, "-T")
    requested = {"topics": topics, "clients": clients, "talkers": talkers, "sizes": sizes}
    chosen = chosen_sections(by or [], [name for name, wanted in requested.items() if wanted])
    source = options.source(captures, filter_text, ports, max_frame_bytes, jobs, keylogs, decode_as)
    report = _new_report(source, {name: rows for name, (_, rows) in chosen.items()} or GROUPS)
    tables: Tables = {name: (title, rows.columns) for name, (title, rows) in chosen.items()}
    tables = tables or SECTIONS
    view = SectionView.of(
        tables,
        SectionOptions(columns, fields, sort, limit, color),
        names=(*NAMES, *KEYS),
        output=output,
        priority=PRIORITY,
    )

    screen = RefreshedOutput(output, interval)
    if interval is not None:
        source.capture.options.jobs = 1  # the report must not read the capture meanwhile

    def lines() -> list[str]:
        sections = view.arranged(report.sections(), source.capture.logins.all)
        state = health(source.capture.reading, source.problems + report.problems)
        if form == "table":
            width, layout = terminal_width(output), view.layout
            return report_lines(
                sections, state, terminal_width=width, layout=layout, tables=view.tables
            )
        return [json_text(row) for row in [*view.rows(sections), {"section": "capture", **state}]]

    source.after_window = lambda: screen.refresh(lines)
    for part in source.without_secrets(source.parts(), show_secrets=False):
        report.add(part)
    screen.write_last(lines())
    view.report_left_out()


def _new_report(source: options.Source, groups: Mapping[str, Grouping]) -> Statistics:
    """Return an empty report, with the software of clients if requested."""
    if not any("software" in grouping.keys for grouping in groups.values()):
        return Statistics(groups)
    offers = VersionOffers(source.capture)
    source.observers.append(offers.observe)
    return Statistics(groups, offers.software_of)
