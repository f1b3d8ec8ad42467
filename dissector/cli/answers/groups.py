"""`kafkashark groups`: members, assignments, committed offsets and lag of each group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import typer

from dissector.cli import options
from dissector.cli.output import terminal_width, write_lines
from dissector.errors import UsageError
from dissector.summary.groups_reader import SECTIONS, GroupsReader, Rows
from dissector.view.tables.statistics_report import section_lines
from dissector.view.text.value_text import json_text

FORMATS = ("table", "ndjson")

_MAX_LISTED = 10


def groups(
    captures: options.Captures,
    names: Annotated[
        list[str] | None,
        typer.Option("--group", metavar="NAME", help="Only this group; may be repeated."),
    ] = None,
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
    """
    Print each group at the end of the capture: its members, their partitions, offsets and lag.

    Offsets and members from before the capture are missing unless a message repeats them. Lag is
    the last high watermark in a Fetch response less the committed offset; empty where the capture
    lacks one of them. -Y selects messages of groups; high watermarks come from all Fetch responses.
    A name is one group, whichever broker coordinates it. One of them: kafkashark groups a.pcap
    --group billing
    """
    options.check_choice(form, FORMATS, "-T")
    source = options.source(
        captures, filter_text, ports, max_frame_bytes, output, jobs, keylogs=keylogs
    )
    source.explains_no_kafka = True
    reader = GroupsReader(source.capture, source.passes)
    for window in source.each_window(gleaning=True):
        reader.add(window)
    sections: Mapping[str, Rows] = reader.sections()
    if names:
        sections = _only(sections, names)
    if form == "table":
        lines = section_lines(sections, SECTIONS, terminal_width(output))[:-1]
    else:
        lines = [
            json_text({"section": section, **row})
            for section, rows in sections.items()
            for row in rows
        ]
    write_lines(lines, output)


def _only(sections: Mapping[str, Rows], names: list[str]) -> Mapping[str, Rows]:
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
