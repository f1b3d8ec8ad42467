"""`kafkashark records`: a row for each record in Produce requests and Fetch responses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from dissector.cli import options
from dissector.cli.live_options import accepts_live
from dissector.cli.output import (
    ROW_FORMATS,
    Row,
    check_parquet,
    write_parquet,
    write_rows,
)
from dissector.cli.sorting import sort_names, sorted_part
from dissector.engine.exchanges.exchange_records import COLUMNS
from dissector.engine.tables.frames import (
    MixedRows,
    TablePart,
    iter_rows,
    record_schema,
    split_mixed,
)
from dissector.protocol.embedded.own_topics import is_own_topic
from dissector.view.json.body import decoded_record, mask_record_row
from dissector.view.text.value_text import record_json, record_text

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
    "error",
)
"""The columns of the table for people."""


@accepts_live
def records(
    captures: options.Captures,
    filter_text: options.FilterText = None,
    form: options.RowFormat = "table",
    output: options.Output = None,
    sort: options.Sort = None,
    ports: options.Ports = None,
    max_frame_bytes: options.MaxFrame = options.MAX_FRAME,
    keylogs: options.KeyLogs = None,
    schemas: options.Schemas = None,
    jobs: options.Jobs = None,
    show_secrets: options.ShowSecrets = False,
) -> None:
    """Print a row for each record that was produced or fetched.

    Live: kafkashark records -i eth0 -Y 'topic == orders'
    """
    options.check_choice(form, ROW_FORMATS, "-T")
    check_parquet(form, output)
    source = options.source(
        captures, filter_text, ports, max_frame_bytes, output, jobs, keylogs=keylogs, records=True
    )
    shown = {"parquet": _with_bytes, "ndjson": record_json}.get(form, record_text)
    names = sort_names(sort, COLUMNS) if sort is not None else []
    source.explains_no_kafka = True
    passing = source.selection.records
    parts = source.record_parts(
        is_own_topic, lambda exchange: _rows(passing(exchange), show_secrets)
    )
    if names:
        parts = iter([sorted_part(parts, names)])
    parts = _shown(parts, shown, one_by_one=form == "table")
    if form == "parquet":
        write_parquet(parts, record_schema(), output)
    else:
        write_rows(parts, form, output, COLUMNS, SHOWN, live=source.is_live)


def _rows(records: Iterable[dict[str, Any]], show_secrets: bool) -> Iterator[Row]:
    """Yield records, those of Kafka's own topics decoded."""
    for row in records:
        decoded = decoded_record(row["topic"], row["key"], row["value"], show_secrets)
        if decoded is not None:
            row["decoded"] = decoded
            if not show_secrets:
                mask_record_row(row["topic"], row)
        yield row


def _shown(
    parts: Iterable[TablePart], shown: Callable[[Row], Row], *, one_by_one: bool
) -> Iterator[TablePart]:
    """Format the rows outside of columns by `shown`; with `one_by_one` all rows."""
    if one_by_one:
        yield from (map(shown, iter_rows(piece)) for piece in split_mixed(parts))
        return
    for part in parts:
        if isinstance(part, MixedRows):
            yield MixedRows(
                part.columns, part.positions, [map(shown, rows) for rows in part.inserted]
            )
        else:
            yield part if isinstance(part, Mapping) else map(shown, part)


def _with_bytes(row: Row) -> Row:
    """Return a row whose value is bytes, like its column; a masked value is text."""
    value = row["value"]
    return {**row, "value": value.encode()} if isinstance(value, str) else row
