"""`kafkashark streams`: a row for each TCP connection, Kafka or not."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import chain
from pathlib import Path

from dissector.cli import capture_source
from dissector.cli.declared.row_options import StreamOptions
from dissector.cli.live_input import accepts_live
from dissector.cli.output import check_parquet, write_parquet, write_rows
from dissector.cli.presentation import table_options
from dissector.cli.sorting import sort_keys, sorted_rows
from dissector.column_catalogue import CONNECTIONS
from dissector.engine.exchanges.exchange import Exchange
from dissector.engine.reading.connection_rows import COLUMNS, connection_rows
from dissector.engine.reading.tls_report import COLUMNS as TLS_COLUMNS
from dissector.engine.tables.column_types import Columns, Row
from dissector.engine.tables.columns_of import column_batches

SHOWN = (
    "connection",
    "network",
    "a",
    "b",
    "speaks",
    "protocols",
    "client",
    "packets_a",
    "packets_b",
    "bytes_a",
    "bytes_b",
    "gap_bytes_a",
    "gap_bytes_b",
    "retransmitted_a",
    "retransmitted_b",
    "skipped_a",
    "skipped_b",
    "entered_a",
    "entered_b",
    "rtt_ms",
    "ended",
)
"""Columns of the text table; TLS columns follow if there is any TLS."""

PRIORITY = (
    *("connection", "a", "b", "speaks", "tls_version", "tls_not_decrypted", "ended"),
    *("bytes_a", "bytes_b", "tls_cipher", "tls_client", "gap_bytes_a", "gap_bytes_b"),
    *("packets_a", "packets_b", "retransmitted_a", "retransmitted_b", "rtt_ms", "client"),
)
"""The columns that a narrow terminal shows first; of the TLS columns the ones with a value."""


@accepts_live
def streams(given: StreamOptions) -> None:
    """Print a row for each TCP connection: endpoints, traffic, losses, protocol and TLS."""
    form, output = given.form, given.output
    check_parquet(form, output)
    source = capture_source.source(given, given.selected)
    chosen = table_options.chosen_columns(given)
    table_options.check_columns(chosen, CONNECTIONS, "streams")
    view = table_options.table_view(given, lambda: source.begin_ns, columns=chosen)
    keys = sort_keys(given.sort, COLUMNS) if given.sort is not None else []
    if given.write is None:
        rows = _rows(source, _passing_connections(source))
    else:
        rows = _write_streams(source, given.write, given.show_secrets)
    tls = {name for name in TLS_COLUMNS if any(row[name] is not None for row in rows)}
    priority = [name for name in PRIORITY if name in tls or name not in TLS_COLUMNS]
    view.layout = replace(view.layout, priority=priority)
    parts: Iterable[Columns] = column_batches(sorted_rows(rows, keys) if keys else rows)
    if chosen:
        parts = table_options.select_columns(parts, chosen)
    parts = view.apply(parts, form)
    if form == "parquet":
        from dissector.engine.parquet.parquet_types import types_of

        write_parquet(parts, types_of(CONNECTIONS, chosen), output)
    else:
        shown = chosen or (SHOWN + TLS_COLUMNS if tls else SHOWN)
        write_rows(parts, form, output, chosen or COLUMNS, shown, layout=view.layout)


def _write_streams(source: capture_source.Source, folder: Path, show_secrets: bool) -> list[Row]:
    """Return the rows, and write the bytes of their connections."""
    from dissector.cli.stream_files import StreamFiles

    with StreamFiles(folder, show_secrets) as files:
        source.capture.tap = files.write
        rows = _rows(source, _passing_connections(source, files.add_secrets))
        # In a frame that was cut off by Ctrl-C the secrets can't be located.
        keep = (
            set()
            if source.capture.options.stop.is_requested
            else {row["connection"] for row in rows}
        )
        files.close(keep=keep, unread=_unread(rows))
    return rows


def _unread(rows: list[Row]) -> set[int]:
    """Return connections of no known protocol to endpoints that speak Kafka in others."""
    brokers = {row["b" if row["client"] == "a" else "a"] for row in rows if row["client"]}
    return {
        row["connection"]
        for row in rows
        if row["speaks"] == "other" and brokers & {row["a"], row["b"]}
    }


def _passing_connections(
    source: capture_source.Source, see: Callable[[Exchange], None] | None = None
) -> set[int]:
    """Read the capture; return the connections with an exchange that passes the filter."""
    if see is None and source.filter is None:
        for _ in source.each_window():
            pass  # connection rows need only the packets
        return set()
    if see is None:
        return {exchange.connection for exchange in source.exchanges()}
    passed = set()
    for exchange in chain.from_iterable(source.windows()):
        if source.passes(exchange):
            passed.add(exchange.connection)
        see(exchange)
    return passed


def _rows(source: capture_source.Source, passed: set[int]) -> list[Row]:
    reading = source.capture.reading
    assert reading is not None
    every = source.filter is None
    return [row for row in connection_rows(reading) if every or row["connection"] in passed]
