"""Service response times and error counts, per API, client, topic and broker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from dissector.engine.exchange import Exchange

if TYPE_CHECKING:
    import polars

BATCH_ROWS = 50_000

_COLUMNS = (
    "api",
    "client_id",
    "client",
    "broker",
    "topic",
    "failed",
    "unanswered",
    "latency_ms",
    "request_bytes",
    "response_bytes",
)

GROUPS: Mapping[str, tuple[str, ...]] = {
    "apis": ("api",),
    "clients": ("client_id", "client"),
    "topics": ("topic",),
    "brokers": ("broker",),
}
"""Section of the report -> what its rows are grouped by."""


def statistics(exchanges: Iterable[Exchange]) -> dict[str, list[dict[str, Any]]]:
    """
    Return the rows of each section, most exchanges first.

    An exchange on several topics counts for each; one without topics for none. Latencies are in
    milliseconds, over answered exchanges, with the nearest rank for percentiles.
    """
    import polars

    parts, batch = [], list[tuple[Any, ...]]()
    for exchange in exchanges:
        batch.append(_row(exchange))
        if len(batch) == BATCH_ROWS:
            parts.append(_frame(batch))
            batch = []
    table = polars.concat([*parts, _frame(batch)])
    return {section: _grouped(table, keys) for section, keys in GROUPS.items()}


def _row(exchange: Exchange) -> tuple[Any, ...]:
    return (
        exchange.api,
        exchange.client_id,
        exchange.client.rpartition(":")[0],
        exchange.broker,
        exchange.topics,
        bool(exchange.errors),
        exchange.status == "unanswered",
        exchange.latency_ms,
        exchange.request_bytes,
        exchange.response_bytes,
    )


def _frame(rows: list[tuple[Any, ...]]) -> polars.DataFrame:
    import polars as pl

    text, number = pl.String(), pl.Int64()
    types = [text, text, text, text, pl.List(text), pl.Boolean(), pl.Boolean(), pl.Float64()]
    schema = dict(zip(_COLUMNS, [*types, number, number], strict=True))
    columns = zip(*rows, strict=True) if rows else ([] for _ in _COLUMNS)
    data = {name: _clean(list(values)) for name, values in zip(_COLUMNS, columns, strict=True)}
    return pl.DataFrame(data, schema=schema)


def _clean(values: list[Any]) -> list[Any]:
    from dissector.engine.table import clean

    return [clean(value) for value in values]


def _grouped(table: polars.DataFrame, keys: tuple[str, ...]) -> list[dict[str, Any]]:
    import polars as pl

    if "topic" in keys:
        table = table.explode("topic").filter(pl.col("topic").is_not_null())
    latency = pl.col("latency_ms")
    return (
        table.group_by(keys)
        .agg(
            pl.len().alias("count"),
            pl.col("failed").sum().alias("errors"),
            pl.col("unanswered").sum(),
            latency.min().alias("min_ms"),
            *(latency.quantile(q / 100, "equiprobable").alias(f"p{q}_ms") for q in (50, 95, 99)),
            latency.max().alias("max_ms"),
            pl.col("request_bytes").sum(),
            pl.col("response_bytes").sum(),
        )
        .sort(["count", *keys], descending=[True, *(False for _ in keys)], nulls_last=True)
        .to_dicts()
    )


def health(reading: Any, problems: int) -> dict[str, int]:
    """Return how complete the capture is: what is missing, and what was left out."""
    connections = reading.streams.connections
    talks = reading.conversations.values()
    sides = [side for known in connections for side in known.sides]
    kafka = [talk for talk in talks if talk.speaks == "kafka"]
    out = {
        "packets": reading.packets,
        "connections": len(connections),
        "kafka_connections": len(kafka),
        "tls_connections": sum(talk.speaks == "tls" for talk in talks),
        "gaps": sum(side.gaps for side in sides),
        "gap_bytes": sum(side.gap_bytes for side in sides),
        "cut_bytes": sum(side.cut_bytes for side in sides),
        "retransmitted_bytes": sum(side.retransmitted_bytes for side in sides),
        "skipped_bytes": sum(stream.skipped for talk in kafka for stream in talk.streams),
        "problems": problems,
    }
    passed = {f"packets passed over: {why}": n for why, n in reading.layers.passed_over.items()}
    return out | passed
