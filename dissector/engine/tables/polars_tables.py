"""Exchanges and records as polars tables, for Python users."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dissector.column_catalogue import (
    ACCOUNTS,
    CONNECTIONS,
    EXCHANGES,
    MESSAGES,
    RECORDS,
    VALUES,
    Catalogue,
)
from dissector.engine.tables.column_types import (
    Coded,
    Column,
    Columns,
    Headers,
    Integers,
    JsonTexts,
    Milliseconds,
    Slices,
)
from dissector.engine.tables.exchange_table import NONE

if TYPE_CHECKING:
    import polars

BATCH_ROWS = 50_000


def exchange_schema(*, logs: bool = False) -> Mapping[str, Any]:
    """Return the columns of exchanges and their polars types; `logs`: with those of logs."""
    return _types((*EXCHANGES, *ACCOUNTS) if logs else EXCHANGES)


def record_schema() -> Mapping[str, Any]:
    """Return the columns of records and their polars types."""
    return _types(RECORDS)


def value_schema() -> Mapping[str, Any]:
    """Return the columns of decoded keys and values and their polars types."""
    return _types(VALUES)


def message_schema() -> Mapping[str, Any]:
    """Return the columns of messages and their polars types."""
    return _types(MESSAGES)


def connection_schema() -> Mapping[str, Any]:
    """Return the columns of connections and their polars types."""
    return _types(CONNECTIONS)


def part_frames(parts: Iterable[Columns], schema: Mapping[str, Any]) -> Iterator[polars.DataFrame]:
    """Yield columns as tables of some ten thousand rows each; one empty table without rows."""
    from dissector.polars_extra import polars

    empty = True
    for part in parts:
        for table in frame(part, schema).iter_slices(BATCH_ROWS):
            if len(table):
                empty = False
                yield table
    if empty:
        yield polars.DataFrame(schema=dict(schema))


def frame(columns: Columns, schema: Mapping[str, Any]) -> polars.DataFrame:
    """Return columns as a table."""
    from dissector.polars_extra import polars

    return polars.DataFrame({name: _series(columns[name], kind) for name, kind in schema.items()})


def _series(column: Column, kind: Any) -> polars.Series:
    from dissector.engine.tables.arrow import bytes_series, headers_series, text_series
    from dissector.polars_extra import polars as pl

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
    from dissector.polars_extra import polars as pl

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
    from dissector.polars_extra import polars as pl

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
