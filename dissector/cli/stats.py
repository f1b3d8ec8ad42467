"""`kafkashark stats`: response times and errors by API, client, topic and broker, or any keys."""

from __future__ import annotations

from collections.abc import Mapping

from dissector.cli import capture_source
from dissector.cli.declared.answer_options import StatsOptions
from dissector.cli.live_input import accepts_live
from dissector.cli.output import check_parquet, terminal_width
from dissector.cli.presentation.section_view import SectionView, Tables
from dissector.cli.refreshed_output import RefreshedOutput
from dissector.column_catalogue import STATISTICS
from dissector.errors import UsageError
from dissector.query.exchange_contents import contents_among, parts_with_contents
from dissector.summary.key_columns import HOOKED, KEYS, TIME_COLUMN, is_value_field
from dissector.summary.sections import NAMED, chosen_sections
from dissector.summary.statistics import GROUPS, Grouping, Statistics, health
from dissector.summary.version_offers import VersionOffers
from dissector.view.tables.statistics_report import NAMES, SECTIONS
from dissector.view.tables.statistics_report import report as report_lines
from dissector.view.text.value_text import json_text

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
def stats(given: StatsOptions) -> None:
    """Print response times and errors per API, client, topic, broker; and the capture's health."""
    form, output, interval = given.form, given.output, given.interval
    check_parquet(form, output)
    in_rows = form in ("csv", "parquet")
    if in_rows and interval is not None:
        raise UsageError("--interval prints tables or ndjson, not csv or parquet")
    requested = [name for name in NAMED if getattr(given, name)]
    chosen = chosen_sections(given.by, requested)
    source = capture_source.source(given, given.selected)
    report = _new_report(source, {name: rows for name, (_, rows) in chosen.items()} or GROUPS)
    tables: Tables = {name: (title, rows.columns) for name, (title, rows) in chosen.items()}
    tables = tables or SECTIONS
    keys = {key for _, rows in chosen.values() for key in rows.keys}
    fields = sorted(key for key in keys if key.startswith(HOOKED) or is_value_field(key))
    names = (TIME_COLUMN, *NAMES, *KEYS, *fields)
    view = SectionView.of(tables, given, names=names, priority=(*fields, *PRIORITY))

    screen = RefreshedOutput(output, interval)
    if interval is not None:
        source.capture.read_in_step()

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
    parts = source.parts()
    if contents := contents_among(keys):
        parts = parts_with_contents(source.capture, source.tables(), contents, source.record_values)
    for part in source.without_secrets(parts, show_secrets=False):
        report.add(part)
    if in_rows:
        sections = view.arranged(report.sections(), source.capture.logins.all)
        view.write_rows(sections, form, output, STATISTICS)
        return
    screen.write_last(lines())
    view.report_left_out()


def _new_report(source: capture_source.Source, groups: Mapping[str, Grouping]) -> Statistics:
    """Return an empty report, with the software of clients if requested."""
    if not any("software" in grouping.keys for grouping in groups.values()):
        return Statistics(groups, chosen=source.filter)
    offers = VersionOffers(source.capture)
    source.observers.append(offers.observe)
    return Statistics(groups, offers.software_of, source.filter)
