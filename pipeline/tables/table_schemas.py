"""The columns of the tables: those of the commands, in Arrow types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from dissector.column_catalogue import GROUPS
from dissector.engine.fields.field_frame import field_schema
from dissector.engine.tables.polars_tables import (
    connection_schema,
    exchange_schema,
    message_schema,
    record_schema,
    value_schema,
)
from dissector.polars_extra import polars as pl
from dissector.summary.lag_intervals import LAG_SECTIONS
from timeline.output.event_rows import event_schema


def _arrow(kind: Any) -> pa.DataType:
    """Return the Arrow type of a polars type, in the form that all readers support."""
    match kind:
        case pl.List():
            return pa.list_(_arrow(kind.inner))
        case pl.Struct():
            return pa.struct({each.name: _arrow(each.dtype) for each in kind.fields})
        case pl.String() | pl.Categorical():
            return pa.string()
        case pl.Binary():
            return pa.binary()
    empty: pa.Array = pl.Series([], dtype=kind).to_arrow()
    return empty.type


def _schema(columns: Mapping[str, Any]) -> pa.Schema:
    return pa.schema({name: _arrow(kind) for name, kind in columns.items()})


EVENTS, FINDINGS, LAGS, PARTITION_LAGS = "events", "findings", "lags", "partition_lags"

_GROUP_COLUMNS = {each.name: each.type for each in GROUPS}

_WORDS = {"int": pa.int64(), "float": pa.float64(), "str": pa.string()}


def _lag_schema(section: str) -> pa.Schema:
    """Return the columns of a section of `groups --interval`, with the time as a number."""
    columns = LAG_SECTIONS[section][1]
    kinds = {name: _WORDS[_GROUP_COLUMNS[name]] for name in columns}
    return pa.schema({"time_ns": pa.int64(), **kinds})


SCHEMAS: dict[str, pa.Schema] = {
    "connections": _schema(connection_schema()),
    "messages": _schema(message_schema()),
    "exchanges": _schema(exchange_schema(logs=True)),
    "records": _schema({**record_schema(), **value_schema()}),
    "fields": _schema(field_schema()),
    "problems": pa.schema(
        {
            "capture": pa.string(),
            "packet": pa.int64(),
            "time_ns": pa.int64(),
            "connection": pa.int64(),
            "api": pa.string(),
            "correlation_id": pa.int32(),
            "kind": pa.string(),
            "path": pa.string(),
            "position": pa.int64(),
            "problem": pa.string(),
        }
    ),
    EVENTS: _schema(event_schema()),
    FINDINGS: pa.schema(
        {
            "id": pa.string(),
            "rank": pa.string(),
            "title": pa.string(),
            "detail": pa.string(),
            "count": pa.int64(),
            "clients": pa.list_(pa.string()),
            "topics": pa.list_(pa.string()),
            "groups": pa.list_(pa.string()),
            "packets": pa.list_(pa.int64()),
            "begin_ns": pa.int64(),
            "end_ns": pa.int64(),
            "filter": pa.string(),
            "more": pa.string(),
            "joined_to": pa.string(),
        }
    ),
    LAGS: _lag_schema(LAGS),
    PARTITION_LAGS: _lag_schema(PARTITION_LAGS),
}
"""
Name of a table -> its columns.

connections: the columns of `streams`; messages: of `dissect`, without bodies; exchanges: of
`pairs`, with those of request logs, null for captures; records: of `records`, with those of decoded
keys and values; fields: of `dissect -T parquet`; events: of `timeline`. problems has a row for each
problem: `kind` is `file`, `request`, `response` or `limit`; `path` and `position` are the place in
the message; of files, `position` is the byte. Packets are counted from 1, as in `dissect`.

findings: of `findings`; `joined_to` is the id of the finding with the same cause that has this one.
lags and partition_lags: of `groups --interval`.
"""

KEYS: dict[str, tuple[str, ...]] = {
    "connections": ("connection", "first_time_ns"),
    "messages": ("capture", "connection", "correlation_id", "kind", "time_ns"),
    "exchanges": (
        "capture",
        "connection",
        "correlation_id",
        "api_key",
        "request_time_ns",
        "response_time_ns",
    ),
    "records": (
        "connection",
        "correlation_id",
        "time_ns",
        "topic",
        "topic_id",
        "partition",
        "offset",
        "producer_id",
        "sequence",
    ),
}
"""
Name of a table -> columns that together identify a row, some of them null: for `MERGE`.

They are the same in every run over the same captures, whatever its ranges and parts.
"""

FACTS_SCHEMA = pa.schema({"topic_id": pa.string(), "name": pa.string(), "packet": pa.int64()})
"""Facts that parts share, as of a packet of the collection: see `shared_facts`."""

_NEEDED = {
    "topic": ("topic_id",),
    "key": ("topic", "topic_id", "value"),
    "value": ("topic", "topic_id", "key"),
}
"""Columns that others depend on until rows are finished: names of topics, and their secrets."""


def with_needed(columns: Iterable[str]) -> frozenset[str]:
    """Return columns with those that are needed to finish them; see `finalize`."""
    more = (name for column in columns for name in (column, *_NEEDED.get(column, ())))
    return frozenset(("connection", *more))
