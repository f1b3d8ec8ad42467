"""`kafkashark pairs`: a row for each exchange."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from dissector.cli import capture_source
from dissector.cli.declared.row_options import PairOptions
from dissector.cli.live_input import accepts_live
from dissector.cli.output import check_parquet, write_parquet, write_rows
from dissector.cli.presentation import table_options
from dissector.column_catalogue import ACCOUNTS, EXCHANGES
from dissector.engine.exchanges.exchange import COLUMNS, Exchange
from dissector.engine.exchanges.exchange_columns import row_batches
from dissector.engine.exchanges.log_columns import ACCOUNT_COLUMNS
from dissector.engine.reading.live_requests import LiveRequests
from dissector.engine.tables.column_types import Columns, JsonTexts, Row
from dissector.errors import UsageError
from dissector.query.selection import Selection
from dissector.view.text.value_text import json_text

if TYPE_CHECKING:
    from dissector.cli.sorting import SortKey
    from dissector.query.log_join import LogJoin

SHOWN = (
    "request_packet",
    "response_packet",
    "request_time_ns",
    "connection",
    "client",
    "broker",
    "api",
    "api_version",
    "correlation_id",
    "client_id",
    "status",
    "latency_ms",
    "errors",
    "topics",
    "problems",
)
"""Columns of the text table."""

PRIORITY = (
    *("request_packet", "request_time_ns", "api", "latency_ms", "errors", "status", "client_id"),
    *("topics", "client", "broker", "api_version", "connection", "problems"),
)
"""The columns that a narrow terminal shows first."""

UNANSWERED = "status == unanswered"
"""A filter for requests without a response."""

BODIES = ("request", "response")


@accepts_live
def pairs(given: PairOptions) -> None:
    """Print a row for each request with its response."""
    form, output, bodies, show_secrets = given.form, given.output, given.bodies, given.show_secrets
    if bodies and form == "table":
        raise UsageError("--bodies requires -T ndjson, csv or parquet")
    chosen = table_options.chosen_columns(given)
    if given.logs and (given.pending or bodies):
        raise UsageError("--with can't be combined with --pending or --bodies")
    if given.pending and (bodies or set(chosen) - {*COLUMNS}):
        raise UsageError("--pending can't be combined with --bodies or columns of body fields")
    check_parquet(form, output)
    selected = filter_text = given.selected
    if given.pending:
        filter_text = f"({filter_text}) and {UNANSWERED}" if filter_text else UNANSWERED
    source = capture_source.source(given, filter_text)
    source.explains_no_kafka = True
    view = table_options.table_view(
        given, lambda: source.begin_ns, columns=chosen, priority=PRIORITY
    )
    _keys(given.sort, (*COLUMNS, *ACCOUNT_COLUMNS, *BODIES, *chosen))  # before files are opened
    join = _join(given.logs, source)
    has_logs = join is not None or source.capture.has_logs
    own = COLUMNS + ACCOUNT_COLUMNS if has_logs else COLUMNS
    known = own + BODIES if bodies else own
    if bodies and chosen:
        raise UsageError("--bodies and --columns exclude each other; --columns takes body fields")
    sorted_by = _keys(given.sort, tuple(dict.fromkeys(known + chosen)))
    kept = dict.fromkeys((*chosen, *(key.name for key in sorted_by))) if chosen else None
    asked = None if kept is None else frozenset(kept) | (join.needs if join else frozenset())
    if bodies:
        parts = _parts_with_bodies(source, show_secrets)
    elif more := [name for name in chosen if name not in own]:
        from dissector.cli.presentation.operand_columns import (
            columns_needed,
            parse_operands,
            parts_with_operands,
        )

        operands = parse_operands(source, more)
        asked = asked and asked.union(columns_needed(operands))
        parts = parts_with_operands(source, operands, show_secrets, form == "parquet", asked)
    else:
        parts = source.parts(asked)
    if given.pending:
        passes = Selection.of(source.capture, selected).passes
        parts = _pending_parts(source, passes)
    if join is not None:
        parts = join.parts(parts)
    parts = source.without_secrets(parts, show_secrets)
    if kept is not None:
        parts = table_options.select_columns(parts, kept)
    if sorted_by:
        from dissector.cli.sorting import sorted_parts

        parts = sorted_parts(parts, sorted_by)
        parts = table_options.select_columns(parts, chosen) if chosen else parts
    parts = view.apply(parts, form)
    if form == "parquet":
        from dissector.engine.parquet.parquet_types import types_of

        catalogue = (*EXCHANGES, *ACCOUNTS) if has_logs else EXCHANGES
        types = types_of(catalogue, chosen, BODIES if bodies else ())
        write_parquet(parts, types, output, 1 if bodies else source.parallel_parts)
    else:
        jobs = 1 if bodies or given.sort or chosen or given.limit else source.parallel_parts
        write_rows(
            parts,
            form,
            output,
            chosen or known,
            chosen or SHOWN,
            jobs,
            live=source.is_live,
            layout=view.layout,
        )
    if join is not None:
        counts = f"{join.matched:,} exchanges in both; {join.unmatched:,} only in the capture"
        print(f"kafkashark: {counts}, {join.only_logged:,} only in the log", file=sys.stderr)


def _join(logs: Sequence[str], source: capture_source.Source) -> LogJoin | None:
    """Return the join with request logs, if there are any."""
    if not logs:
        return None
    from dissector.query.log_join import LogJoin

    return LogJoin(logs, source.capture.options)


def _pending_parts(
    source: capture_source.Source, passes: Callable[[Exchange], bool]
) -> Iterator[Columns]:
    """Yield waiting requests, each once, and finally unanswered ones."""
    source.capture.options.live = True
    live_requests = LiveRequests(passes)
    for window in source.passing():
        waiting = (
            exchange
            for exchange in window
            if not live_requests.has_shown(exchange.connection, exchange.request_offset)
        )
        yield from row_batches(map(Exchange.row, waiting))
        in_flight = live_requests.to_show(source.in_flight())
        yield from row_batches(map(Exchange.row, in_flight))


def _keys(text: str | None, columns: Sequence[str]) -> list[SortKey]:
    """Return the columns that rows are sorted by, if any; see `sorting.sort_keys`."""
    if text is None:
        return []
    from dissector.cli.sorting import sort_keys

    return sort_keys(text, columns)


def _parts_with_bodies(source: capture_source.Source, show_secrets: bool) -> Iterator[Columns]:
    """Yield rows with bodies."""
    from dissector.view.json.bulk_bodies import with_bodies

    for part in source.tables():
        if isinstance(part, tuple):
            yield from with_bodies(*part, show_secrets, source.capture.names)
        else:
            yield from row_batches(_with_bodies(part, show_secrets), _BODY_KINDS)


_BODY_KINDS = dict.fromkeys(BODIES, JsonTexts)


def _with_bodies(exchanges: Iterator[Exchange], show_secrets: bool) -> Iterator[Row]:
    """Yield rows with bodies."""
    from dissector.view.json.body import body_json

    for exchange in exchanges:
        row = exchange.row()
        for name, message in zip(BODIES, (exchange.request, exchange.response), strict=True):
            value = body_json(message, exchange.request, show_secrets=show_secrets)
            row[name] = None if value is None else json_text(value)
        yield row
