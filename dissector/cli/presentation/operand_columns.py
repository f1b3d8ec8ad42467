"""Columns of `--columns` and `-e` that no table has: body fields, functions, Wireshark's names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from dissector.cli.capture_source import Source
from dissector.engine.exchanges.exchange import COLUMNS, Exchange
from dissector.engine.exchanges.exchange_columns import row_batches
from dissector.engine.exchanges.fact_columns import Asked
from dissector.engine.fields.column_query import ColumnQuery
from dissector.engine.tables.column_types import Coded, Columns, Row
from dissector.engine.tables.exchange_table import Exchanges
from dissector.errors import FilterError, UsageError
from dissector.filter import BodyPath, Column, Name, parse_operand, values_of
from dissector.filter import Row as FilterRow
from dissector.filter.operands import packet_facts
from dissector.hooks.hook_columns import HookCells
from dissector.protocol.embedded.secrecy.credentials import mask_texts
from dissector.query.contents.hooked_records import use_hook_columns
from dissector.view.tables.secret_cells import mask_cell
from dissector.view.text.value_text import bytes_text, json_text


def parse_operands(source: Source, texts: Iterable[str], *, records: bool = False) -> list[Name]:
    """
    Resolve names in texts, and make the source keep their values.

    Args:
        source: The source.
        texts: The names, slices and functions.
        records: Whether rows are records; their columns take precedence.

    Raises:
        FilterError: One is unknown.
        UsageError: A name is a part of records, which only `records` prints.
    """
    names = [_parse(text, records) for text in texts]
    for name in names:
        paths = (source for source in name.sources if isinstance(source, BodyPath))
        if name.steps and any(path.path[-1] == "records" for path in paths):
            raise UsageError(f"column {name}: a part of records; `kafkashark records` prints it")
    use_hook_columns(source.capture, (each for name in names for each in name.sources))
    columns = (each for name in names for each in name.sources if not isinstance(each, BodyPath))
    source.capture.options.packet_facts |= packet_facts(columns)
    return names


def _parse(text: str, records: bool) -> Name:
    try:
        return parse_operand(text, records=records)
    except FilterError as error:
        raise FilterError(text, error.what, error.position, "column") from None


class MaskedExchange:
    """An exchange, or a record with its exchange, as the operands of a column; printed bodies."""

    def __init__(self, exchange: Exchange, show_secrets: bool, record: Row | None = None) -> None:
        self._exchange = exchange
        self._show_secrets = show_secrets
        self._record = record or {}

    def column(self, name: str) -> object:
        """Return a column of `pairs`, or of the record."""
        value = self._record[name] if name in self._record else self._exchange.column(name)
        known = self._exchange.known_secrets
        return value if self._show_secrets else mask_cell(name, value, known)

    def body(self, kind: str) -> Mapping[str, Any] | None:
        """Return the decoded body of the `request` or the `response`, secrets masked."""
        from dissector.view.json.body import body_json

        exchange = self._exchange
        if kind == "hook":
            found = exchange.body(kind)
            if self._show_secrets or not isinstance(found, HookCells):
                return found
            return found.changed(partial(mask_texts, known=exchange.known_secrets))
        message = exchange.request if kind == "request" else exchange.response
        request = exchange.request if kind == "response" else None
        body: Mapping[str, Any] | None = body_json(
            message, request, show_secrets=self._show_secrets
        )
        return body


def is_of_records(name: Name) -> bool:
    """Return whether the value of a name is that of a record, not of its exchange."""
    return any(isinstance(each, Column) and each.is_record_column for each in name.sources)


def operand_cells(
    exchange: Exchange,
    names: Sequence[Name],
    show_secrets: bool,
    as_text: bool,
    record: Row | None = None,
) -> dict[str, Any]:
    """Return the cells of an exchange: null, a value, or a list; `as_text`: all as text."""
    return cells_of(MaskedExchange(exchange, show_secrets, record), names, as_text=as_text)


def cells_of(row: FilterRow, names: Sequence[Name], *, as_text: bool) -> dict[str, Any]:
    """Return the cells of a row: null, a value, or a list; `as_text`: all as text."""
    cells: dict[str, Any] = {}
    for name in names:
        values = [_printable(value) for value in values_of(row, name) if value is not None]
        if as_text:
            texts = (each if isinstance(each, str) else json_text(each) for each in values)
            cells[name.text] = ",".join(texts) if values else None
        else:
            cells[name.text] = values[0] if len(values) == 1 else values or None
    return cells


def _printable(value: object) -> object:
    return bytes_text(value) if isinstance(value, bytes) else value


class _Value:
    """The value of a column, as the operand of a column."""

    def __init__(self, value: object) -> None:
        self._value = value

    def column(self, _: str) -> object:
        return self._value

    def body(self, _: str) -> None:
        return None


def columns_needed(names: Iterable[Name]) -> Iterator[str]:
    """Yield the columns of `pairs` of which alone a name is made: Wireshark's, functions."""
    return filter(None, map(_only_column, names))


def _only_column(name: Name) -> str | None:
    match name.sources:
        case (Column(column),) if column in COLUMNS:
            return column
        case _:
            return None


def parts_with_operands(
    source: Source, names: Sequence[Name], show_secrets: bool, as_text: bool, asked: Asked
) -> Iterator[Columns]:
    """Yield the rows of `pairs` with more columns; `asked` has all of `columns_needed`."""
    of_columns = {name: column for name in names if (column := _only_column(name))}
    of_bodies = [name for name in names if name not in of_columns]
    for part in source.tables(asked):
        if not isinstance(part, tuple):
            yield from row_batches(
                exchange.row() | operand_cells(exchange, names, show_secrets, as_text)
                for exchange in part
            )
            continue
        table, columns = part
        (shown,) = source.without_secrets([columns], show_secrets)
        more = {
            name.text: _cells_in_column(shown, column, name, as_text)
            for name, column in of_columns.items()
        }
        if of_bodies:
            more |= _cells_of_bodies(source, table, of_bodies, show_secrets, as_text)
        yield {**columns, **more}


def _cells_in_column(columns: Columns, column: str, name: Name, as_text: bool) -> Coded:
    """Return the cells of a name that depend on one column: each distinct value is read once."""
    query = ColumnQuery(columns)
    codes, values = query.distinct_values(column, np.arange(len(query)))
    cells = [cells_of(_Value(each), [name], as_text=as_text)[name.text] for each in values]
    return Coded(codes, cells)


def _cells_of_bodies(
    source: Source, table: Exchanges, names: Sequence[Name], show_secrets: bool, as_text: bool
) -> dict[str, Coded]:
    reading = source.capture.reading
    assert reading is not None
    exchanges = (reading.exchange(table, row, source.capture.names) for row in range(len(table)))
    cells = [operand_cells(exchange, names, show_secrets, as_text) for exchange in exchanges]
    codes = np.arange(len(table))
    return {name.text: Coded(codes, [each[name.text] for each in cells]) for name in names}
