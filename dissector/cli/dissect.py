"""
`kafkashark dissect`: a line for each message, like tshark; its tree of fields; its bytes.

Parquet output is a table with a row for each field: see `engine.fields.field_frame.field_schema`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import numpy as np

from dissector.cli import capture_source
from dissector.cli.declared.row_options import MessageOptions
from dissector.cli.live_input import accepts_live
from dissector.cli.output import check_parquet, write_lines, write_row_groups, write_rows
from dissector.cli.presentation import table_options
from dissector.cli.tshark.field_separators import FieldLayout
from dissector.cli.tshark.json_layers import FORMS, packets
from dissector.cli.tshark.message_columns import field_names, field_rows, message_summary
from dissector.engine.reading.live_requests import LiveRequests
from dissector.engine.reading.packet_order import OrderedMessage, PacketOrder
from dissector.engine.tables.column_types import Coded, Columns, iter_rows
from dissector.errors import UsageError
from dissector.view.tables.secret_cells import packet_comments
from dissector.view.text.escape import escaped
from dissector.view.text.hexdump import hexdump
from dissector.view.text.summary_line import LineStyle, message_line
from dissector.view.text.value_text import json_text

if TYPE_CHECKING:
    from dissector.view.text.decoded_nodes import ReadValue


@accepts_live
def dissect(given: MessageOptions) -> None:
    """Print a line for each message, in the order of the capture."""
    form, output, limit, show_secrets = given.form, given.output, given.limit, given.show_secrets
    verbose, bytes_too = given.verbose, given.bytes_too
    chosen = table_options.chosen_columns(given)
    if chosen and form == "text" and not (verbose or bytes_too):
        form = "fields"
    if form == "fields" and not chosen:
        raise UsageError("-T fields takes the names: --columns NAME,NAME or -e NAME")
    if chosen and form not in ("fields", *FORMS):
        raise UsageError("--columns and -e NAME go with -T fields, json and ek")
    if limit is not None and form == "parquet":
        raise UsageError("-c takes rows of messages; -T parquet has a row for each field")
    layout = FieldLayout.of(given.field_layout)
    if given.field_layout and form != "fields":
        raise UsageError("-E goes with -T fields")
    if form != "text" and (verbose or bytes_too):
        raise UsageError("-V and -x go with -T text")
    check_parquet(form, output)
    source = capture_source.source(given, given.selected)
    source.explains_no_kafka = True
    names = field_names(source, chosen)
    view = table_options.table_view(given, lambda: source.begin_ns)
    has_color = table_options.has_color(given, output)

    def style() -> LineStyle:
        return LineStyle(source.begin_ns, view.times, has_color, source.places)

    if form == "parquet":
        _write_fields(source, output, show_secrets)
        return
    source.capture.options.live = True
    if verbose:
        source.capture.options.packet_facts |= {"comments"}
    if form == "ndjson":
        parts = source.without_secrets(_json_parts(source, show_secrets), show_secrets)
        parts = parts if limit is None else table_options.limited(parts, limit)
        write_rows(parts, "ndjson", output, (), ())
        return
    if form in FORMS:
        messages = islice(_messages_in_order(source), limit)
        documents = packets(source, messages, names, FORMS[form].time_text, show_secrets)
        write_lines(FORMS[form].lines(documents), output, end="")
        return
    if form == "text" and not (verbose or bytes_too):
        lines = _summary_lines(source, style, limit, show_secrets)
    elif form == "fields":
        rows = field_rows(source, islice(_messages_in_order(source), limit), names, show_secrets)
        titles = [[name.text for name in names]] if layout.header else []
        lines = chain(map(layout.separator.join, titles), map(layout.line, rows))
    else:
        messages = islice(_messages_in_order(source), limit)
        read_value = source.record_values().read if verbose and not given.no_values else None
        lines = _detailed_lines(messages, style, (verbose, bytes_too, show_secrets), read_value)
    write_lines(lines, output)


def _write_fields(source: capture_source.Source, output: str | None, show_secrets: bool) -> None:
    """Write every field of every message."""
    from dissector.engine.fields.field_arrow_schema import ARROW_SCHEMA
    from dissector.engine.fields.field_rows import FIELD_TYPES, field_rows

    groups = map(field_rows, source.field_tables(show_secrets))
    metadata = {"ARROW:schema": ARROW_SCHEMA}
    write_row_groups(groups, FIELD_TYPES, output, metadata, source.capture.options.jobs)


def _json_parts(source: capture_source.Source, show_secrets: bool) -> Iterator[Columns]:
    """Yield the rows of messages in the order of the capture's packets."""
    from dissector.cli.presentation.message_windows import message_windows, ordered_batches
    from dissector.view.json.bulk_bodies import with_bodies
    from dissector.view.json.message_rows import message_rows

    for batch in ordered_batches(message_windows(source)):
        rows = message_rows(
            batch,
            lambda message: _row(message, show_secrets),
            partial(with_bodies, show_secrets=show_secrets, names=source.capture.names),
        )
        yield from [rows] if rows else []


def _summary_lines(
    source: capture_source.Source,
    style: Callable[[], LineStyle],
    limit: int | None,
    show_secrets: bool,
) -> Iterator[str]:
    """Yield the lines of messages in the order of the capture's packets, some at a time."""
    from dissector.cli.presentation.message_windows import (
        lasting_windows,
        message_windows,
        ordered_batches,
    )
    from dissector.view.json.message_rows import message_rows
    from dissector.view.text.bulk_lines import message_lines

    def row(message: OrderedMessage) -> dict[str, Any]:
        return {"line": message_line(message_summary(message, show_secrets), style())}

    def lines(rows: Columns) -> Columns:
        (shown,) = source.without_secrets([rows], show_secrets)
        values = list(message_lines(shown, style()))
        return {"line": Coded(np.arange(len(values)), values)}

    # The first lines of a limited number must not wait for the end of the capture.
    can_wait = source.filter is None and limit is None and source.capture.names.can_read_ahead
    windows = lasting_windows(source, row) if can_wait else message_windows(source)
    parts: Iterable[Columns] = (
        message_rows(batch, row, lambda _, columns: [columns], lines)
        for batch in ordered_batches(windows)
    )
    for rows in parts if limit is None else table_options.limited(parts, limit):
        if rows:
            yield "\n".join(str(row["line"]) for row in iter_rows(rows))


def _messages_in_order(source: capture_source.Source) -> Iterator[OrderedMessage]:
    """Yield the messages of a capture in the order of its packets."""
    order, live_requests = PacketOrder(), LiveRequests(source.passes)
    for window in source.passing():
        for exchange in window:
            shown = live_requests.has_shown(exchange.connection, exchange.request_offset)
            yield from order.add(exchange, request_shown=shown)
        for exchange in live_requests.to_show(source.in_flight()):
            yield from order.add(exchange)
        yield from order.ready(source.low_watermark)
    yield from order.drain()


def _detailed_lines(
    messages: Iterable[OrderedMessage],
    style: Callable[[], LineStyle],
    shown: tuple[bool, bool, bool],
    read_value: ReadValue | None,
) -> Iterator[str]:
    """Yield lines with details; `shown`: whether fields, bytes and secrets are."""
    from dissector.view.text.detail_tree import detail_tree

    verbose, bytes_too, show_secrets = shown
    for each in messages:
        lines = [message_line(message_summary(each, show_secrets), style())]
        if verbose:
            comments = packet_comments(each.exchange, (each.message.kind,), show_secrets)
            lines += [f"  packet comment: {escaped(text)}" for text in comments]
            request = each.exchange.request if each.message.kind == "response" else None
            lines += detail_tree(
                each.message,
                request=request,
                topic_name=each.exchange.known_topic,
                show_secrets=show_secrets,
                read_value=read_value,
            )
        if bytes_too:
            yield from lines
            yield from hexdump(each.message.frame, masked=_masked_ranges(each, show_secrets))
            yield ""
        else:
            # One text: each step of this generator passes several others.
            yield "\n".join([*lines, ""] if verbose else lines)


def _masked_ranges(each: OrderedMessage, show_secrets: bool) -> list[tuple[int, int]]:
    if show_secrets:
        return []
    if each.exchange.is_token:
        return [(0, len(each.message.frame))]
    from dissector.protocol.embedded.masking import secret_ranges

    request = each.exchange.request if each.message.kind == "response" else None
    return secret_ranges(each.message, request)


def _row(each: OrderedMessage, show_secrets: bool) -> dict[str, Any]:
    from dissector.view.json.body import body_json

    exchange, message = each.exchange, each.message
    summary = message_summary(each, show_secrets)
    request = exchange.request if message.kind == "response" else None
    body = body_json(message, request, show_secrets=show_secrets)
    return {
        "capture": exchange.capture,
        "packet": each.packet,
        "time_ns": each.time_ns,
        "connection": exchange.connection,
        "source": summary.source,
        "target": summary.target,
        "kind": message.kind,
        "api_key": message.api_key,
        "api": exchange.api,
        "api_version": message.shown_version,
        "correlation_id": message.correlation_id,
        "client_id": message.client_id,
        "bytes": None if exchange.is_logged else message.size,
        "status": exchange.status,
        "latency_ms": summary.latency_ms,
        "errors": list(summary.errors),
        "topics": list(summary.topics),
        "problems": [str(problem) for problem in exchange.problems_of(message)],
        "body": None if body is None else json_text(body),
    }
