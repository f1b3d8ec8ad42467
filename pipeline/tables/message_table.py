"""The messages of a window: a row for each request and each response, from those of exchanges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from dissector.engine.exchanges.exchange import Exchange
from dissector.engine.facts.topic_table import TopicNames
from dissector.engine.reading.capture import Reading
from dissector.engine.tables.exchange_table import NONE, Exchanges, Frames
from dissector.engine.tables.frames import escape_invalid_utf8
from dissector.protocol.headers import API_VERSIONS
from dissector.protocol.messages import UNSUPPORTED_VERSION, Message
from pipeline.tables.table_schemas import SCHEMAS

_COLUMNS = SCHEMAS["messages"].names


def message_frame(reading: Reading, table: Exchanges, exchanges: pl.DataFrame) -> pl.DataFrame:
    """
    Return the messages of a window, in no order.

    Args:
        reading: The reading that the window is of.
        table: The exchanges of the window.
        exchanges: Their columns of `pairs`.
    """
    odd = _odd(table, exchanges)
    sides = pl.concat(
        [
            _side(exchanges, table.request, "request", odd),
            _side(exchanges, table.response, "response", odd),
        ]
    )
    rows = list(_odd_rows(reading, table, exchanges, np.flatnonzero(odd)))
    if rows:
        sides = pl.concat([sides, pl.DataFrame(rows, schema=sides.schema, orient="row")])
    return sides


def _odd(table: Exchanges, exchanges: pl.DataFrame) -> Any:
    """Tell which exchanges are to be asked as objects: what is wrong belongs to one message."""
    odd = exchanges["problems"].list.len().to_numpy() > 0
    # A refusal of the version may be of another version than its request.
    response = table.response
    refused = np.flatnonzero((table.api_key == API_VERSIONS) & (response.captured_bytes >= 6))
    odd[refused] |= table.int16_at(response.start[refused] + 4) == UNSUPPORTED_VERSION
    return odd


def _side(exchanges: pl.DataFrame, frames: Frames, kind: str, odd: Any) -> pl.DataFrame:
    """Return the requests, or the responses, of exchanges with which nothing is wrong."""
    asked = kind == "request"
    none = pl.lit([], dtype=pl.List(pl.String))
    own: dict[str, Any] = {
        "packet": pl.Series(values=frames.packet + 1),
        "time_ns": pl.col(f"{kind}_time_ns"),
        "source": pl.col("client" if asked else "broker"),
        "target": pl.col("broker" if asked else "client"),
        "kind": pl.lit(kind),
        "bytes": pl.col(f"{kind}_bytes"),
        "client_id": pl.col("client_id") if asked else pl.lit(None, dtype=pl.String),
        "latency_ms": pl.lit(None, dtype=pl.Float64) if asked else pl.col("latency_ms"),
        "errors": none if asked else pl.col("errors"),
        "topics": pl.col("topics") if asked else none,
    }
    there = pl.Series(values=(frames.start != NONE) & ~odd)
    return exchanges.with_columns(**own).filter(there).select(_COLUMNS)


def _odd_rows(
    reading: Reading, table: Exchanges, exchanges: pl.DataFrame, rows: Any
) -> Iterator[tuple[Any, ...]]:
    for row in rows.tolist():
        exchange = reading.exchange(table, row, TopicNames())
        cells = exchanges.row(row, named=True)
        for message in exchange.messages:
            asked = message.kind == "request"
            yield tuple(map(escape_invalid_utf8, _cells(exchange, message, cells, asked)))


def _cells(
    exchange: Exchange, message: Message, cells: dict[str, Any], asked: bool
) -> tuple[Any, ...]:
    packet = exchange.request_packet if asked else exchange.response_packet
    ends = exchange.client, exchange.broker
    return (
        exchange.capture,
        packet,
        exchange.request_time_ns if asked else exchange.response_time_ns,
        exchange.connection,
        ends[not asked],
        ends[asked],
        message.kind,
        message.api_key,
        exchange.api,
        message.shown_version,
        message.correlation_id,
        message.client_id,
        message.size,
        exchange.status,
        None if asked else exchange.latency_ms,
        [] if asked else cells["errors"],
        cells["topics"] if asked else [],
        [str(problem) for problem in exchange.problems_of(message)],
    )
