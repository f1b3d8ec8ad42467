"""`kafkashark records`: a row for each record in Produce requests and Fetch responses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from dissector.cli import options
from dissector.cli.output import (
    ROW_FORMATS,
    Row,
    check_parquet,
    sorted_rows,
    write_parquet,
    write_rows,
)
from dissector.engine.records import COLUMNS, record_rows
from dissector.engine.table import record_schema
from dissector.view.bodies import decoded_record, mask_record_row
from dissector.view.values import json_text, record_json

SHOWN = (
    "time_ns",
    "api",
    "topic",
    "partition",
    "offset",
    "timestamp_ms",
    "key",
    "value",
    "headers",
    "codec",
    "producer_id",
    "sequence",
    "control",
)
"""The columns of the table for people."""


def records(
    captures: options.Captures,
    filter_text: options.FilterText = None,
    form: options.RowFormat = "table",
    output: options.Output = None,
    sort: options.Sort = None,
    ports: options.Ports = None,
    max_frame_bytes: options.MaxFrame = options.MAX_FRAME,
    show_secrets: options.ShowSecrets = False,
) -> None:
    """Print a row for each record that was produced or fetched."""
    options.one_of(form, ROW_FORMATS, "-T")
    check_parquet(form, output)
    source = options.source(captures, filter_text, ports, max_frame_bytes, output)
    rows = sorted_rows(_rows(source, show_secrets), sort, COLUMNS)
    if form == "parquet":
        as_bytes = ({**row, "value": _bytes(row["value"])} for row in rows)
        write_parquet(as_bytes, record_schema(), output)
    else:
        write_rows(_as_text(rows, form), form, output, COLUMNS, SHOWN)


def _rows(source: options.Source, show_secrets: bool) -> Iterator[Row]:
    for exchange in source.exchanges():
        for row in record_rows(exchange):
            decoded = decoded_record(row["topic"], row["key"], row["value"], show_secrets)
            if decoded is not None:
                row["decoded"] = decoded
                if not show_secrets:
                    mask_record_row(row["topic"], row)
            yield row


def _as_text(rows: Iterable[Row], form: str) -> Iterator[dict[str, Any]]:
    """Yield rows whose keys and values can be printed; in csv and tables as one text each."""
    for row in rows:
        out = record_json(row)
        if form != "ndjson":
            for name in ("key", "value"):
                if isinstance(out[name], dict):
                    out[name] = f"0x{out[name]['hex']}"
            out["headers"] = [f"{h['key']}={_text(h['value'])}" for h in out["headers"]]
        yield out


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json_text(value)


def _bytes(value: Any) -> Any:
    """A masked value is text; the column holds bytes."""
    return value.encode() if isinstance(value, str) else value
