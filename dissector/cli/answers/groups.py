"""`kafkashark groups`: members, assignments, committed offsets and lag of each group."""

from __future__ import annotations

from collections.abc import Sequence

from dissector.cli import capture_source
from dissector.cli.declared.answer_options import GroupOptions
from dissector.cli.live_input import accepts_live
from dissector.cli.output import check_parquet, terminal_width, write_lines
from dissector.cli.presentation.section_view import Sections, SectionView
from dissector.cli.presentation.table_options import given_times
from dissector.column_catalogue import GROUPS
from dissector.errors import UsageError
from dissector.summary.groups_reader import SECTIONS, GroupsReader
from dissector.summary.lag_intervals import LAG_SECTIONS, LagIntervals
from dissector.view.tables.statistics_report import section_lines
from dissector.view.text.value_text import json_text

ROW_NAMES = ("time", "group", "topic", "partition", "member_id")
"""The columns that name a row."""

PRIORITY = (
    *(*ROW_NAMES, "state", "generation", "members", "lag", "client_id", "assignment"),
    *("note", "change_per_s", "committed", "high_watermark", "client", "left", "coordinator"),
)
"""The columns that a narrow terminal shows first."""

_MAX_LISTED = 10


@accepts_live
def groups(given: GroupOptions) -> None:
    """Print each group at the end of the capture, or the lag of groups over time."""
    check_parquet(given.form, given.output)
    tables = SECTIONS if given.interval is None else LAG_SECTIONS
    view = SectionView.of(tables, given, names=ROW_NAMES, priority=PRIORITY)
    source = capture_source.source(given, given.selected)
    source.explains_no_kafka = True
    lags = None
    if given.interval is not None:
        style = given_times(given, lambda: source.begin_ns)
        text = None if style is None else style.text
        lags = LagIntervals(source.capture, given.interval, source.filter, text)
    reader = GroupsReader(source.capture, source.filter, lags.count_members if lags else None)
    for window in source.each_window(gleaning=True):
        reader.add(window)
        if lags is not None:
            lags.add(window)
    known = reader.sections()
    sections: Sections = known if lags is None else lags.sections()
    if given.names:
        sections = _only(sections, given.names, [row["group"] for row in known["groups"]])
    sections = view.arranged(sections, source.capture.logins.all)
    if given.form in ("csv", "parquet"):
        view.write_rows(sections, given.form, given.output, GROUPS)
        return
    if given.form == "table":
        width = terminal_width(given.output)
        lines = section_lines(sections, view.tables, width, view.layout)[:-1]
    else:
        lines = [json_text(row) for row in view.rows(sections)]
    write_lines(lines, given.output)
    view.report_left_out()


def _only(sections: Sections, names: Sequence[str], known: Sequence[str]) -> Sections:
    """Return the rows of some of the known groups."""
    for name in names:
        if name not in known:
            listed = ", ".join(known[:_MAX_LISTED]) + (", ..." if len(known) > _MAX_LISTED else "")
            raise UsageError(f"no group is named {name!r}; there are: {listed or 'none'}")
    return {
        section: [row for row in rows if row["group"] in names]
        for section, rows in sections.items()
    }
