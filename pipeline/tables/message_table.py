"""The messages of a window: a row for each request and each response of its exchanges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from dissector.engine.exchanges.exchange import Exchange
from dissector.engine.facts.topic_table import TopicNames
from dissector.engine.reading.capture import Reading
from dissector.engine.tables.exchange_table import NONE, Exchanges, Frames
from dissector.engine.tables.polars_tables import escape_invalid_utf8
from dissector.polars_extra import polars as pl
from dissector.protocol.headers import API_VERSIONS
from dissector.protocol.messages import UNSUPPORTED_VERSION, Message
from pipeline.tables.table_schemas import SCHEMAS

_COLUMNS = SCHEMAS["messages"].names


def message_frame(reading: Reading, table: Exchanges, exchanges: pl.DataFrame) -> pl.DataFrame:
    """
    Return the messages of a window, in no particular order.

    Args:
        reading: The reading that the window belongs to.
        table: The exchanges of the window.
        exchanges: Their columns of `pairs`.
    """
    needs_object = _needs_object(table, exchanges)
    sides = pl.concat(
        [
            _side(exchanges, table.request, "request", needs_object),
            _side(exchanges, table.response, "response", needs_object),
        ]
    )
    rows = list(_object_rows(reading, table, exchanges, np.flatnonzero(needs_object)))
    if rows:
        sides = pl.concat([sides, pl.DataFrame(rows, schema=sides.schema, orient="row")])
    return sides


def _needs_object(table: Exchanges, exchanges: pl.DataFrame) -> Any:
    """Return which exchanges are decoded as objects: a problem belongs to one message."""
    needs_object = exchanges["problems"].list.len().to_numpy() > 0
    # An UNSUPPORTED_VERSION response may have another version than its request.
    response = table.response
    refused = np.flatnonzero((table.api_key == API_VERSIONS) & (response.captured_bytes >= 6))
    needs_object[refused] |= table.int16_at(response.start[refused] + 4) == UNSUPPORTED_VERSION
    return needs_object


def _side(exchanges: pl.DataFrame, frames: Frames, kind: str, needs_object: Any) -> pl.DataFrame:
    """Return the requests, or the responses, of exchanges without problems."""
    is_request = kind == "request"
    none = pl.lit([], dtype=pl.List(pl.String))
    columns: dict[str, Any] = {
        "packet": pl.Series(values=frames.packet + 1),
        "time_ns": pl.col(f"{kind}_time_ns"),
        "source": pl.col("client" if is_request else "broker"),
        "target": pl.col("broker" if is_request else "client"),
        "kind": pl.lit(kind),
        "bytes": pl.col(f"{kind}_bytes"),
        "client_id": pl.col("client_id") if is_request else pl.lit(None, dtype=pl.String),
        "latency_ms": pl.lit(None, dtype=pl.Float64) if is_request else pl.col("latency_ms"),
        "errors": none if is_request else pl.col("errors"),
        "topics": pl.col("topics") if is_request else none,
    }
    is_present = pl.Series(values=(frames.start != NONE) & ~needs_object)
    return exchanges.with_columns(**columns).filter(is_present).select(_COLUMNS)


def _object_rows(
    reading: Reading, table: Exchanges, exchanges: pl.DataFrame, rows: Any
) -> Iterator[tuple[Any, ...]]:
    for row in rows.tolist():
        exchange = reading.exchange(table, row, TopicNames())
        cells = exchanges.row(row, named=True)
        for message in exchange.messages:
            is_request = message.kind == "request"
            yield tuple(map(escape_invalid_utf8, _cells(exchange, message, cells, is_request)))


def _cells(
    exchange: Exchange, message: Message, cells: dict[str, Any], is_request: bool
) -> tuple[Any, ...]:
    packet = exchange.request_packet if is_request else exchange.response_packet
    ends = exchange.client, exchange.broker
    return (
        exchange.capture,
        packet,
        exchange.request_time_ns if is_request else exchange.response_time_ns,
        exchange.connection,
        ends[not is_request],
        ends[is_request],
        message.kind,
        message.api_key,
        exchange.api,
        message.shown_version,
        message.correlation_id,
        message.client_id,
        None if exchange.is_logged else message.size,
        exchange.status,
        None if is_request else exchange.latency_ms,
        [] if is_request else cells["errors"],
        cells["topics"] if is_request else [],
        [str(problem) for problem in exchange.problems_of(message)],
    )
