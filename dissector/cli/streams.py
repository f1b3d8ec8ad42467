"""`kafkashark streams`: a row for each TCP connection, Kafka or not."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dissector.cli import options
from dissector.cli.output import ROW_FORMATS, parquet_file, sorted_rows, write_rows
from dissector.cli.stream_files import StreamFiles
from dissector.engine.connections import COLUMNS, connection_rows

SHOWN = (
    "connection",
    "network",
    "a",
    "b",
    "speaks",
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
    "ended",
)
"""The columns of the table for people."""


def streams(
    captures: options.Captures,
    filter_text: options.FilterText = None,
    form: Annotated[
        str, typer.Option("-T", "--format", metavar="FORMAT", help="|".join(ROW_FORMATS))
    ] = "table",
    output: options.Output = None,
    write: Annotated[
        Path | None,
        typer.Option(
            "--write", metavar="DIR", help="Write the bytes of each side, gaps left out, to files."
        ),
    ] = None,
    sort: Annotated[
        str | None,
        typer.Option("--sort", metavar="COLUMN[,COLUMN]", help="Sort the rows, in memory."),
    ] = None,
    ports: options.Ports = None,
    max_frame_bytes: options.MaxFrame = options.MAX_FRAME,
    show_secrets: options.ShowSecrets = False,
) -> None:
    """Print a row for each TCP connection: who, how much, what is missing, what it speaks.

    With -Y only the connections with an exchange that passes.
    """
    options.one_of(form, ROW_FORMATS, "-T")
    file = parquet_file(output) if form == "parquet" else output
    source = options.source(captures, filter_text, ports, max_frame_bytes)
    files = StreamFiles(write, show_secrets) if write is not None else None
    if files is not None:
        source.capture.tap = files.take
    passed = set()
    for exchange in source.capture_exchanges():
        if source.passes(exchange):
            passed.add(exchange.connection)
        if files is not None:
            files.hide(exchange)
    reading = source.capture.reading
    assert reading is not None
    rows = [
        row
        for row in connection_rows(reading)
        if source.filter is None or row["connection"] in passed
    ]
    if files is not None:
        files.close(keep={row["connection"] for row in rows})
    in_order = list(sorted_rows(rows, sort, COLUMNS))
    if form == "parquet":
        import polars

        polars.DataFrame(in_order, infer_schema_length=None).write_parquet(str(file))
    else:
        write_rows(in_order, form, file, COLUMNS, SHOWN)
