"""`kafkashark records`: a row for each record in Produce requests and Fetch responses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dissector.cli import capture_source
from dissector.cli.declared.row_options import RecordOptions
from dissector.cli.live_input import accepts_live
from dissector.cli.output import check_parquet, write_parquet, write_rows
from dissector.cli.presentation import table_options
from dissector.cli.presentation.value_columns import ValueColumns
from dissector.cli.sorting import sort_keys, sorted_parts
from dissector.column_catalogue import RECORDS, VALUES
from dissector.engine.exchanges.exchange import Exchange
from dissector.engine.exchanges.exchange_records import COLUMNS
from dissector.engine.tables.column_types import Coded, Columns, Row
from dissector.errors import UsageError
from dissector.protocol.embedded.masking import is_secret_topic
from dissector.protocol.embedded.secrecy.hidden_records import hides_headers
from dissector.view.json.body import decoded_record, mask_record_row
from dissector.view.tables.bulk_rows import text_columns

SHOWN = (
    "packet",
    "time_ns",
    "client_id",
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
    "status",
    "acks",
    "error",
)
"""Columns of the text table."""

PRIORITY = (
    *("packet", "time_ns", "topic", "partition", "offset", "key", "value", "api", "error"),
    *("client_id", "headers"),
)
"""The columns that a narrow terminal shows first."""


@accepts_live
def records(given: RecordOptions) -> None:
    """Print a row for each record that was produced or fetched."""
    form, output, sort, show_secrets = given.form, given.output, given.sort, given.show_secrets
    check_parquet(form, output)
    folder = _topic_folder(given) if given.values_as == "struct" else None
    source = capture_source.source(given, given.selected, records=True)
    source.explains_no_kafka = True
    chosen = table_options.chosen_columns(given)
    view = table_options.table_view(
        given, lambda: source.begin_ns, columns=chosen, priority=PRIORITY
    )
    by_default = folder is not None or given.value_settings.is_asked
    values = ValueColumns(source, chosen, by_default=by_default)
    columns = COLUMNS + values.names
    keys = sort_keys(sort, tuple(dict.fromkeys(columns + chosen))) if sort is not None else []
    more = [name for name in chosen if name not in columns]
    if values.masks:
        _check_hidden(source, more)
    passing = source.selection.records

    def rows(exchange: Exchange) -> Iterator[Row]:
        return decoded_rows(passing(exchange), show_secrets)

    how = show_secrets, form == "parquet"
    parts = source.record_parts(
        is_secret_topic, _with_operands(source, more, rows, how) if more else rows
    )
    parts = values.parts(source.without_secrets(parts, show_secrets), as_text=form == "parquet")
    if folder is not None:
        from dissector.cli.presentation.topic_files import write_topic_files

        write_topic_files(parts, folder)
        return
    if keys:
        parts = sorted_parts(parts, keys)
    if chosen:
        parts = table_options.select_columns(parts, chosen)
    parts = view.apply(parts, form)
    if form == "table":
        parts = map(partial(_table_columns, replaces=not chosen), parts)
    if form == "parquet":
        from dissector.engine.parquet.parquet_types import types_of

        types = types_of((*RECORDS, *VALUES), chosen or columns)
        write_parquet(parts, types, output, source.parallel_parts)
    else:
        write_rows(
            parts,
            form,
            output,
            chosen or columns,
            chosen or (*SHOWN, *(name for name in values.names if name == "value_schema")),
            live=source.is_live,
            layout=view.layout,
        )


def _topic_folder(given: RecordOptions) -> Path:
    """
    Return the folder for a file of each topic.

    Raises:
        UsageError: Its options do not go together.
    """
    from dissector.cli.presentation.topic_files import check_folder

    if given.form != "parquet":
        raise UsageError("--values-as struct goes with -T parquet -o DIR")
    if given.columns or given.fields or given.sort or given.limit is not None:
        raise UsageError("--values-as struct writes all columns: no --columns, -e, --sort or -c")
    return check_folder(given.output)


def _check_hidden(source: capture_source.Source, names: Sequence[str]) -> None:
    """
    Check that no column is a part of the bytes that --mask hides.

    Raises:
        UsageError: One is.
    """
    from dissector.cli.presentation.operand_columns import parse_operands

    for name in parse_operands(source, names, records=True):
        sources = {getattr(each, "name", "") for each in name.sources}
        if sources & {"key", "value"}:
            raise UsageError(f"column {name}: --mask hides it; name a field, value.FIELD")
        if hides_headers() and "headers" in sources:
            raise UsageError(f"column {name}: --mask hides headers; name the column headers")


def _table_columns(columns: Columns, *, replaces: bool) -> Columns:
    """Return the columns of the text table; `replaces`: decoded values stand for their bytes."""
    texts = {**text_columns(columns)}
    for name in ("key", "value"):
        decoded = texts.get(f"{name}_decoded")
        if replaces and decoded is not None:
            cells = [
                decoded.value(row) or texts[name].value(row) for row in range(len(texts[name]))
            ]
            texts[name] = Coded(np.arange(len(cells)), cells)
    return texts


def _with_operands(
    source: capture_source.Source,
    names: Sequence[str],
    rows: Callable[[Exchange], Iterator[Row]],
    how: tuple[bool, bool],
) -> Callable[[Exchange], Iterator[Row]]:
    """Return a function that adds cells to records, or to their exchange: see `operand_cells`."""
    from dissector.cli.presentation.operand_columns import (
        is_of_records,
        operand_cells,
        parse_operands,
    )

    operands = parse_operands(source, names, records=True)
    of_records = [name for name in operands if is_of_records(name)]
    of_exchanges = [name for name in operands if not is_of_records(name)]
    source.needs_exchanges = True

    def wider_rows(exchange: Exchange) -> Iterator[Row]:
        cells = operand_cells(exchange, of_exchanges, *how)
        for row in rows(exchange):
            yield {**row, **cells, **operand_cells(exchange, of_records, *how, row)}

    return wider_rows


def decoded_rows(records: Iterable[dict[str, Any]], show_secrets: bool) -> Iterator[Row]:
    """Yield records; records of Kafka's own topics are decoded."""
    for row in records:
        decoded = decoded_record(row["topic"], row["key"], row["value"], show_secrets)
        if decoded is not None:
            row["decoded"] = decoded
        if not show_secrets and row["topic"] is not None:
            mask_record_row(row["topic"], row)
        yield row
