"""`kafkashark groups`: members, assignments, committed offsets and lag of each group."""

from __future__ import annotations

from typing import Annotated

from dissector.cli import options
from dissector.cli.output import terminal_width, write_lines
from dissector.cli.parsing.parameters import Option
from dissector.cli.presentation import table_options
from dissector.cli.presentation.section_view import SectionOptions, Sections, SectionView
from dissector.errors import UsageError
from dissector.summary.groups_reader import SECTIONS, GroupsReader
from dissector.view.tables.statistics_report import section_lines
from dissector.view.text.value_text import json_text

FORMATS = ("table", "ndjson")

ROW_NAMES = ("group", "topic", "partition", "member_id")
"""The columns that name a row."""

PRIORITY = (
    *(*ROW_NAMES, "state", "generation", "members", "lag", "client_id", "assignment"),
    *("committed", "high_watermark", "client", "left", "coordinator"),
)
"""The columns that a narrow terminal shows first."""

_MAX_LISTED = 10


def groups(
    captures: options.Captures,
    names: Annotated[
        list[str] | None,
        Option("--group", metavar="NAME", help="Only this group; may be repeated."),
    ] = None,
    filter_text: options.FilterText = None,
    form: Annotated[str, options.format_option(FORMATS)] = "table",
    output: options.Output = None,
    columns: table_options.ColumnList = None,
    fields: table_options.ColumnNames = None,
    sort: options.Sort = None,
    limit: Annotated[
        int | None,
        Option("-c", "--limit", metavar="N", min=1, help="Only the first N rows of each section."),
    ] = None,
    color: table_options.Color = "auto",
    list_columns: table_options.ListColumns = False,
    list_fields: table_options.ListFields = False,
    ports: options.Ports = None,
    max_frame_bytes: options.MaxFrame = options.MAX_FRAME,
    keylogs: options.KeyLogs = None,
    decode_as: options.DecodeAs = None,
    keep_copies: options.KeepCopies = False,
    schemas: options.Schemas = None,
    jobs: options.Jobs = None,
) -> None:
    """
    Print each group at the end of the capture: its members, their partitions, offsets and lag.

    Offsets and members from before the capture are missing unless a message repeats them. Lag is
    the last high watermark in a Fetch response less the committed offset; empty where the capture
    lacks one of them. -Y selects messages of groups; its tests of time, such as frame.time_relative
    < 30, select the Fetch responses too, the others do not.
    Groups with one name are one group, whichever broker coordinates them. One of them: kafkashark
    groups a.pcap --group billing
    """
    options.check_choice(form, FORMATS, "-T")
    view = SectionView.of(
        SECTIONS,
        SectionOptions(columns, fields, sort, limit, color),
        names=ROW_NAMES,
        output=output,
        priority=PRIORITY,
    )
    source = options.source(captures, filter_text, ports, max_frame_bytes, jobs, keylogs, decode_as)
    source.explains_no_kafka = True
    reader = GroupsReader(source.capture, source.filter)
    for window in source.each_window(gleaning=True):
        reader.add(window)
    sections: Sections = reader.sections()
    if names:
        sections = _only(sections, names)
    sections = view.arranged(sections, source.capture.logins.all)
    if form == "table":
        lines = section_lines(sections, view.tables, terminal_width(output), view.layout)[:-1]
    else:
        lines = [json_text(row) for row in view.rows(sections)]
    write_lines(lines, output)
    view.report_left_out()


def _only(sections: Sections, names: list[str]) -> Sections:
    """Return the rows of some groups."""
    known = [row["group"] for row in sections["groups"]]
    for name in names:
        if name not in known:
            listed = ", ".join(known[:_MAX_LISTED]) + (", ..." if len(known) > _MAX_LISTED else "")
            raise UsageError(f"no group is named {name!r}; there are: {listed or 'none'}")
    return {
        section: [row for row in rows if row["group"] in names]
        for section, rows in sections.items()
    }
