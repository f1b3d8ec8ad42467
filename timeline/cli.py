"""The command `kafkashark timeline`."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any

from dissector.cli.declared.row_options import RowOptions, format_option
from dissector.cli.parsing.declarations import option
from dissector.cli.presentation.completion import complete_words
from dissector.column_catalogue import EVENTS
from dissector.errors import UsageError
from dissector.file_roles import WRITES
from timeline.events.event import COLUMNS, KINDS, RECORD, Event, kinds_of

if TYPE_CHECKING:
    from dissector.cli.capture_source import Source
    from dissector.cli.presentation.table_options import TableView
    from dissector.cli.sorting import SortKey

FORMATS = ("text", "table", "ndjson", "csv", "parquet", "mermaid", "perfetto")


class TimelineOptions(RowOptions):
    """The options of `timeline`."""

    form: str = format_option(*FORMATS)
    kinds: tuple[str, ...] = option(
        "--kind",
        default=(),
        metavar="KIND",
        complete=complete_words(lambda: (*KINDS, RECORD)),
        help=f"Only events of these kinds: {', '.join(KINDS)}; with --records also {RECORD}. "
        "Repeatable, or with commas.",
    )
    records: str | None = option(
        "--records",
        default=None,
        metavar="FILTER",
        help="Follow the records that pass a filter, such as 'key.id == 7': when they were "
        "produced, fetched, replicated, and committed by groups. Without --kind only these "
        "events, of the kind record.",
    )
    otlp: str | None = option(
        "--otlp",
        default=None,
        metavar="FILE|URL",
        help="Write Produce and Fetch as spans of OpenTelemetry, in place of events: as lines "
        "of JSON, or to a collector. `traceparent` headers of records name their parents.",
        role=WRITES,
    )


def timeline(given: TimelineOptions) -> None:
    """Print the events in a capture in time order, with causes and evidence.

    Events of groups, producers, transactions, consumers, connections and the cluster. -Y selects
    events with evidence in a matching exchange. Events are marked as uncertain if lost packets
    could show another cause. --columns prints a table. --records follows an order, or a user, by
    the key or a field of records.

    Follow a key: kafkashark timeline captures/demo.pcap --records 'key == "customer-0"'

    Live: kafkashark timeline -i eth0 -f 'tcp port 9092'
    """
    # All is loaded before a live capture begins: its first packets must not wait.
    from dissector.cli import capture_source  # noqa: F401
    from dissector.cli.live_input import accepts_live
    from timeline.timeline import Timeline  # noqa: F401

    accepts_live(_timeline)(given)


def _timeline(given: TimelineOptions) -> None:
    from dissector.cli import capture_source
    from dissector.cli.output import (
        check_parquet,
        is_terminal,
        open_atomic,
        terminal_width,
        write_lines,
        write_text,
    )
    from dissector.cli.presentation.table_options import (
        check_columns,
        chosen_columns,
        table_view,
    )
    from dissector.cli.sorting import sort_keys
    from timeline.output.event_text import event_lines
    from timeline.output.mermaid import mermaid_lines
    from timeline.output.perfetto.trace import Trace
    from timeline.timeline import Timeline

    form, output, otlp, show_secrets = given.form, given.output, given.otlp, given.show_secrets
    kinds, columns = _kinds(given.kinds, given.records), chosen_columns(given)
    check_columns(columns, EVENTS, "timeline")
    if columns and form == "text":
        form = "table"
    keys = [] if given.sort is None else sort_keys(given.sort, COLUMNS)
    if (columns or keys or given.limit is not None) and form == "perfetto":
        raise UsageError("--columns, --sort and -c go with events as lines or rows, not perfetto")
    if (columns or keys) and form == "mermaid":
        raise UsageError("--columns and --sort go with events as rows, not with diagrams")
    check_parquet(form, output)
    if otlp is not None:
        _check_otlp(otlp, form, output)
        if given.records is not None:
            raise UsageError("--otlp writes spans in place of events: without --records")
    if form == "perfetto" and is_terminal(output):
        raise UsageError("-T perfetto requires an output file: -o FILE")
    source = capture_source.source(given, given.selected)
    source.explains_no_kafka = True
    if otlp is not None:
        _export_spans(source, otlp, show_secrets)
        return
    passes = None if source.filter is None else source.passes
    found = Timeline(
        source.capture,
        kinds,
        passes,
        show_secrets=show_secrets,
        live=source.is_live,
        records=given.records,
    )
    windows = source.each_window(gleaning=True, checking=False)
    if form == "perfetto":
        with open_atomic(output) as file:
            trace = Trace(
                source.capture,
                file.write,
                source.selection.rows_that_pass,
                show_secrets=show_secrets,
            )
            trace.write(windows, found.events)
        return
    events = islice(_sorted(found.events(windows), keys), given.limit)
    view = table_view(given.replace(form=form), lambda: source.begin_ns, columns=columns)
    if form == "text":
        time, width = view.time_text(lambda: source.begin_ns), terminal_width(output)
        write_text(event_lines(events, time, width, source.places_text), output)
    elif form == "mermaid":
        write_lines(mermaid_lines(events, source.places_text), output)
    else:
        _write_rows(events, form, output, view, live=source.is_live and not keys)


def _sorted(events: Iterable[Event], keys: list[SortKey]) -> Iterable[Event]:
    """Return events in the order of columns; without any in that of time."""
    if not keys:
        return events
    from dissector.cli.sorting import sorted_rows

    rows: list[dict[str, Any]] = [{**each.row(), "": each} for each in events]
    return [row[""] for row in sorted_rows(rows, keys)]


def _write_rows(
    events: Iterable[Event], form: str, output: str | None, view: TableView, *, live: bool
) -> None:
    """Write events as rows; without chosen columns tables leave out the evidence."""
    from dissector.cli.output import write_parquet, write_rows
    from dissector.cli.presentation.table_options import select_columns
    from dissector.engine.tables.columns_of import column_batches
    from timeline.output.event_rows import event_types

    is_nested = form in ("ndjson", "parquet")
    rows = (event.row() if is_nested else _flat_row(event) for event in events)
    parts = column_batches(rows, live=live)
    if view.columns:
        parts = select_columns(parts, view.columns)
    if form == "parquet":
        write_parquet(parts, event_types(view.columns), output)
        return
    shown = view.columns or tuple(name for name in COLUMNS if name not in ("end_ns", "evidence"))
    parts = view.apply(parts, form)
    columns = view.columns or COLUMNS
    write_rows(parts, form, output, columns, shown, live=live, layout=view.layout)


def _check_otlp(target: str, form: str, output: str | None) -> None:
    """
    Check that spans can be written.

    Raises:
        UsageError: They can't, or events are requested as well.
    """
    from timeline.output.otlp import check_sender
    from timeline.output.otlp_collector import is_url

    if form != "text" or output is not None:
        raise UsageError("--otlp writes spans in place of events: without -T and -o")
    if is_url(target):
        check_sender()


def _export_spans(source: Source, target: str, show_secrets: bool) -> None:
    """Write or send the spans of matching exchanges."""
    from dissector.cli.output import write_lines
    from timeline.events.words import counted, mask_of
    from timeline.output.messaging_spans import messaging_spans
    from timeline.output.otlp import json_lines, send
    from timeline.output.otlp_collector import is_url

    mask = mask_of(source.capture, show_secrets)
    spans = (span for each in source.exchanges() for span in messaging_spans(each, mask))
    if is_url(target):
        print(f"{counted(send(spans, target), 'span')} sent", file=sys.stderr)
    else:
        write_lines(json_lines(spans), target)


def _flat_row(event: Event) -> dict[str, Any]:
    """Return a row with its evidence as JSON, because CSV has no nested values."""
    from dissector.view.text.value_text import json_text

    row = event.row()
    return {**row, "evidence": json_text(row["evidence"])}


def _kinds(given: Iterable[str], records: str | None) -> tuple[str, ...]:
    """
    Return the selected kinds of events in order.

    Raises:
        UsageError: The kind does not exist, or requires --records.
    """
    named = {word for each in given for word in each.split(",")}
    known = (*KINDS, RECORD)
    for word in sorted(named - set(known)):
        raise UsageError(f"--kind takes {', '.join(known)}, not {word!r}")
    if RECORD in named and records is None:
        raise UsageError("--kind record follows chosen records: --records FILTER")
    return kinds_of((kind for kind in known if kind in named), records)
