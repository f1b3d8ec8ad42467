"""Exchanges and records as polars tables, for Python users and for Parquet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars

BATCH_ROWS = 50_000

_EXCHANGES = {
    "capture": "str",
    "connection": "int",
    "client": "str",
    "broker": "str",
    "api_key": "int16",
    "api": "str",
    "api_version": "int16",
    "correlation_id": "int32",
    "client_id": "str",
    "status": "str",
    "request_time_ns": "int",
    "response_time_ns": "int",
    "latency_ms": "float",
    "request_bytes": "int",
    "response_bytes": "int",
    "errors": "strs",
    "topics": "strs",
    "problems": "strs",
}

_RECORDS = {
    "connection": "int",
    "correlation_id": "int32",
    "api": "str",
    "time_ns": "int",
    "topic": "str",
    "topic_id": "str",
    "partition": "int32",
    "offset": "int",
    "timestamp_ms": "int",
    "key": "bytes",
    "value": "bytes",
    "headers": "headers",
    "magic": "int8",
    "codec": "str",
    "producer_id": "int",
    "producer_epoch": "int16",
    "sequence": "int32",
    "transactional": "bool",
    "control": "str",
}


def exchange_schema() -> Mapping[str, Any]:
    """Return the columns of exchanges and their polars types."""
    return _types(_EXCHANGES)


def record_schema() -> Mapping[str, Any]:
    """Return the columns of records and their polars types."""
    return _types(_RECORDS)


def frames(
    rows: Iterable[Mapping[str, Any]], schema: Mapping[str, Any]
) -> Iterator[polars.DataFrame]:
    """Yield tables of some ten thousand rows each; one empty table where there are no rows."""
    import polars

    rows = iter(rows)
    batch = list(islice(rows, BATCH_ROWS))
    while True:
        columns = {name: [clean(row[name]) for row in batch] for name in schema}
        yield polars.DataFrame(columns, schema=dict(schema))
        batch = list(islice(rows, BATCH_ROWS))
        if not batch:
            return


def clean(value: Any) -> Any:
    """Make text that is no UTF-8 fit for Arrow: bytes that can't be decoded are escaped."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    if isinstance(value, dict):
        return {key: clean(item) for key, item in value.items()}
    return [clean(item) for item in value] if isinstance(value, list) else value


def _types(columns: Mapping[str, str]) -> dict[str, Any]:
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
    return {name: words[word] for name, word in columns.items()}
