"""Exchanges and records as polars tables, for Python users and for Parquet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, islice
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from dissector.column_catalogue import CONNECTIONS, EXCHANGES, MESSAGES, RECORDS, Catalogue
from dissector.engine.tables.column_types import (
    Coded,
    Column,
    Columns,
    Headers,
    Integers,
    JsonTexts,
    Milliseconds,
    Slices,
    row_count,
    row_dict,
    select_rows,
)
from dissector.engine.tables.exchange_table import NONE

if TYPE_CHECKING:
    import polars

Row: TypeAlias = Mapping[str, Any]


@dataclass(slots=True, eq=False, repr=False)
class MixedRows:
    """
    Rows in columns, with single rows inserted.

    Attributes:
        columns: Most rows.
        positions: The row of the columns before each list of `inserted`; in order.
        inserted: The other rows.
    """

    columns: Columns
    positions: Sequence[int]
    inserted: Sequence[Iterable[Row]]

    def batches(self) -> Iterator[Columns | Iterable[Row]]:
        """Yield all rows in order."""
        begin = 0
        for position, rows in zip(self.positions, self.inserted, strict=True):
            if begin < position:
                yield select_rows(self.columns, slice(begin, position))
            begin = position
            yield rows
        if begin < row_count(self.columns):
            yield select_rows(self.columns, slice(begin, None))


RowBatch: TypeAlias = Columns | Iterable[Row]
"""Single rows, or a whole window of rows in columns."""

TablePart: TypeAlias = RowBatch | MixedRows
"""A batch, or columns with single rows inserted."""

BATCH_ROWS = 50_000


def exchange_schema() -> Mapping[str, Any]:
    """Return the columns of exchanges and their polars types."""
    return _types(EXCHANGES)


def record_schema() -> Mapping[str, Any]:
    """Return the columns of records and their polars types."""
    return _types(RECORDS)


def message_schema() -> Mapping[str, Any]:
    """Return the columns of messages and their polars types."""
    return _types(MESSAGES)


def connection_schema() -> Mapping[str, Any]:
    """Return the columns of connections and their polars types."""
    return _types(CONNECTIONS)


def frames(
    rows: Iterable[Mapping[str, Any]], schema: Mapping[str, Any]
) -> Iterator[polars.DataFrame]:
    """Yield tables of some ten thousand rows each; one empty table without rows."""
    import polars

    rows = iter(rows)
    batch = list(islice(rows, BATCH_ROWS))
    while True:
        columns = {name: [escape_invalid_utf8(row[name]) for row in batch] for name in schema}
        yield polars.DataFrame(columns, schema=dict(schema))
        batch = list(islice(rows, BATCH_ROWS))
        if not batch:
            return


def part_frames(
    parts: Iterable[TablePart], schema: Mapping[str, Any]
) -> Iterator[polars.DataFrame]:
    """Yield tables of parts that are columns or rows; one empty table without rows."""
    import polars

    empty = True
    for part in _joined(parts):
        if isinstance(part, MixedRows):
            tables = _mixed_frame(part, schema).iter_slices(BATCH_ROWS)
        elif isinstance(part, Mapping):
            tables = frame(part, schema).iter_slices(BATCH_ROWS)
        else:
            tables = frames(part, schema)
        for table in tables:
            if len(table):
                empty = False
                yield table
    if empty:
        yield polars.DataFrame(schema=dict(schema))


def _joined(parts: Iterable[TablePart]) -> Iterator[TablePart]:
    """Yield the same parts, with successive rows joined."""
    for in_columns, group in groupby(parts, lambda part: isinstance(part, (Mapping, MixedRows))):
        if in_columns:
            yield from group
        else:
            yield chain.from_iterable(cast(Iterator[Iterable[Row]], group))


def split_mixed(parts: Iterable[TablePart]) -> Iterator[RowBatch]:
    """Yield the rows of all parts in order, as batches."""
    for part in parts:
        if isinstance(part, MixedRows):
            yield from part.batches()
        else:
            yield part


def iter_rows(batch: RowBatch) -> Iterator[Row]:
    """Return the rows of a batch as mappings."""
    if isinstance(batch, Mapping):
        return (row_dict(batch, row) for row in range(row_count(batch)))
    return iter(batch)


def _mixed_frame(part: MixedRows, schema: Mapping[str, Any]) -> polars.DataFrame:
    """Return all rows as a table: inserted rows are appended, and then moved to their positions."""
    import polars

    in_columns = frame(part.columns, schema)
    lists = [list(rows) for rows in part.inserted]
    others = list(frames(chain.from_iterable(lists), schema))
    places = np.repeat(np.asarray(part.positions, np.int64), [len(rows) for rows in lists])
    appended = np.arange(len(in_columns), len(in_columns) + len(places))
    return polars.concat([in_columns, *others])[
        np.insert(np.arange(len(in_columns)), places, appended)
    ]


def frame(columns: Columns, schema: Mapping[str, Any]) -> polars.DataFrame:
    """Return columns as a table."""
    import polars

    return polars.DataFrame({name: _series(columns[name], kind) for name, kind in schema.items()})


def _series(column: Column, kind: Any) -> polars.Series:
    import polars as pl

    from dissector.engine.tables.arrow import bytes_series, headers_series, text_series

    match column:
        case Coded():
            values = [*map(escape_invalid_utf8, column.values), None]
            indices = np.where(column.codes == NONE, len(values) - 1, column.codes)
            return pl.Series(values=values, dtype=kind).gather(indices)
        case Integers():
            return _nullable(column.values, column.values == NONE).cast(kind)
        case Milliseconds():
            return _nullable(column.values_ns / 1e6, column.values_ns == NONE)
        case JsonTexts():
            return text_series(column)
        case Slices():
            return bytes_series(column)
        case Headers():
            series = headers_series(column)
            if series is not None:
                return series
            values = [escape_invalid_utf8(column.value(row)) for row in range(len(column))]
            return pl.Series(values=values, dtype=kind)


def _nullable(values: NDArray[Any], null: NDArray[np.bool_]) -> polars.Series:
    import polars as pl

    series = pl.Series(values=values)
    return (
        series.zip_with(pl.Series(values=~null), pl.Series([None], dtype=series.dtype))
        if null.any()
        else series
    )


def escape_invalid_utf8(value: Any) -> Any:
    """Make text fit for Arrow: bytes that can't be decoded as UTF-8 are escaped."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    if isinstance(value, dict):
        return {key: escape_invalid_utf8(item) for key, item in value.items()}
    return [escape_invalid_utf8(item) for item in value] if isinstance(value, list) else value


def _types(columns: Catalogue) -> dict[str, Any]:
    import polars as pl

    words = {
        "str": pl.String(),
        "strs": pl.List(pl.String()),
        "int": pl.Int64(),
        "int32": pl.Int32(),
        "int16": pl.Int16(),
        "int8": pl.Int8(),
        "float": pl.Float64(),
        "bool": pl.Boolean(),
        "bytes": pl.Binary(),
        "headers": pl.List(pl.Struct({"key": pl.String(), "value": pl.Binary()})),
    }
    return {each.name: words[each.type] for each in columns}
