"""`kafkashark pairs`: a row for each exchange."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from dissector.cli import options
from dissector.cli.output import (
    ROW_FORMATS,
    parquet_file,
    sorted_rows,
    write_rows,
)
from dissector.engine.exchange import COLUMNS, Exchange
from dissector.errors import UsageError
from dissector.view.bodies import body_json
from dissector.view.values import json_text

SHOWN = (
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
"""The columns of the table for people."""

BODIES = ("request", "response")


def pairs(
    captures: options.Captures,
    filter_text: options.FilterText = None,
    form: Annotated[
        str, typer.Option("-T", "--format", metavar="FORMAT", help="|".join(ROW_FORMATS))
    ] = "table",
    output: options.Output = None,
    bodies: Annotated[
        bool, typer.Option("--bodies", help="Add the decoded bodies as request and response.")
    ] = False,
    sort: Annotated[
        str | None,
        typer.Option("--sort", metavar="COLUMN[,COLUMN]", help="Sort the rows, in memory."),
    ] = None,
    ports: options.Ports = None,
    max_frame_bytes: options.MaxFrame = options.MAX_FRAME,
    show_secrets: options.ShowSecrets = False,
) -> None:
    """Print a row for each request with its response."""
    options.one_of(form, ROW_FORMATS, "-T")
    if bodies and form == "table":
        raise UsageError("--bodies goes with -T ndjson, csv or parquet")
    file = parquet_file(output) if form == "parquet" else output
    source = options.source(captures, filter_text, ports, max_frame_bytes)
    columns = COLUMNS + BODIES if bodies else COLUMNS
    rows = sorted_rows(
        _rows(source.exchanges(), bodies, form != "ndjson", show_secrets), sort, columns
    )
    if form == "parquet":
        _write_parquet(rows, str(file), bodies)
    else:
        write_rows(rows, form, file, columns, SHOWN)


def _rows(
    exchanges: Iterator[Exchange], bodies: bool, as_text: bool, show_secrets: bool
) -> Iterator[dict[str, Any]]:
    """Yield the rows; `as_text`: with bodies as JSON text, for what has no nested values."""
    for exchange in exchanges:
        row = exchange.row()
        if bodies:
            request, response = exchange.request, exchange.response
            for name, message in zip(BODIES, (request, response), strict=True):
                value = body_json(message, request, show_secrets=show_secrets)
                row[name] = json_text(value) if as_text and value is not None else value
        yield row


def _write_parquet(rows: Any, file: str, bodies: bool) -> None:
    import polars

    from dissector.engine.table import exchange_schema, frames

    schema = dict(exchange_schema())
    if bodies:
        schema |= dict.fromkeys(BODIES, polars.String())
    polars.concat(list(frames(rows, schema))).write_parquet(file)
