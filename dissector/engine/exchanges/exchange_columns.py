"""The columns of `pairs` for a whole window: the values of `Exchange.row`, in bulk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from dissector.engine.exchanges.exchange import TOKEN
from dissector.engine.exchanges.fact_columns import ExchangeSummaries
from dissector.engine.exchanges.log_columns import NO_LOGS, LogColumns
from dissector.engine.facts.topic_table import TopicNames
from dissector.engine.tables.column_types import (
    Coded,
    Column,
    Columns,
    Integers,
    Milliseconds,
    Row,
    distinct,
)
from dissector.engine.tables.columns_of import Kinds, batches_of, columns_of
from dissector.engine.tables.exchange_table import NONE, STATUS, Exchanges, Ints
from dissector.protocol.apis import api_name

_NO_API, _TOKEN = -(2**16), -(2**16) - 1
"""Values for missing API keys and for tokens; keys have 16 bits."""


def exchange_columns(
    table: Exchanges,
    summaries: ExchangeSummaries,
    files: Callable[[Ints], Coded],
    ends: Callable[[Ints], list[tuple[str, str]]],
    origins: Callable[[Ints], list[str | None]],
    logs: LogColumns = NO_LOGS,
) -> dict[str, Column]:
    """
    Return the columns of `pairs`; topic ids without a name in the same message stay ids.

    Args:
        table: The exchanges of a window.
        summaries: The extracted fields of their bodies.
        files: Returns the names of the files of packets.
        ends: Returns the endpoints of connections by number: side 0 and side 1 of each.
        origins: Returns the client before a proxy of connections by number.
        logs: The logs among the files; if there are any, their columns are added.
    """
    request, response = table.request, table.response
    packet = np.where(request.packet == NONE, response.packet, request.packet)
    connection, client, broker = _connections(table, ends)
    origin_codes, numbers = distinct(table.connection)
    api_key, api, api_version = _apis(table)
    both = (request.time_ns != NONE) & (response.time_ns != NONE)
    latency_ns = np.where(both, response.time_ns - request.time_ns, NONE)
    is_logged = logs.is_logged(table)
    server_ns = np.where(is_logged, NONE, table.server_ns)
    return {
        "capture": files(packet),
        "connection": connection,
        "client": client,
        "broker": broker,
        "origin": Coded(origin_codes, origins(numbers)),
        "api_key": api_key,
        "api": api,
        "api_version": api_version,
        "correlation_id": Integers(table.correlation_id),
        "client_id": Coded(summaries.client_id, summaries.client_ids),
        "status": Coded(table.status.astype(np.int64), STATUS),
        "request_packet": Integers(_numbers(request.packet)),
        "response_packet": Integers(_numbers(response.packet)),
        "request_time_ns": Integers(request.time_ns),
        "response_time_ns": Integers(response.time_ns),
        "latency_ms": Milliseconds(latency_ns),
        "network_ms": Milliseconds(np.where(server_ns == NONE, NONE, latency_ns - server_ns)),
        "server_ms": Milliseconds(server_ns),
        "request_bytes": Integers(np.where(is_logged, NONE, request.size)),
        "response_bytes": Integers(np.where(is_logged, NONE, response.size)),
        "errors": Coded(summaries.errors, [list(each) for each in summaries.error_lists]),
        "topics": Coded(summaries.topics, summaries.topic_lists),
        "problems": Coded(
            summaries.problems, [list(map(str, each)) for each in summaries.problem_lists]
        ),
        **(logs.columns(table) if logs else {}),
    }


_KINDS = dict.fromkeys(
    (
        *("correlation_id", "request_packet", "response_packet"),
        *("request_time_ns", "response_time_ns", "request_bytes", "response_bytes"),
    ),
    Integers,
)


def row_columns(rows: Sequence[Row], more: Kinds | None = None) -> Columns:
    """
    Return rows of `pairs` that were made one by one in the same columns.

    Args:
        rows: The rows.
        more: The kinds of more columns that they have.
    """
    times = [(row["request_time_ns"], row["response_time_ns"]) for row in rows]
    latency_ns = [NONE if None in pair else pair[1] - pair[0] for pair in times]
    latency = Milliseconds(np.array(latency_ns, np.int64))
    return {**columns_of(rows, {**_KINDS, **(more or {})}), "latency_ms": latency} if rows else {}


def row_batches(rows: Iterable[Row], more: Kinds | None = None) -> Iterator[Columns]:
    """Yield many rows of `pairs` as columns; see `row_columns` and `column_batches`."""
    return (row_columns(batch, more) for batch in batches_of(rows))


def _numbers(packets: Ints) -> Ints:
    """Return the numbers of packets as Wireshark counts them, from 1."""
    return np.where(packets == NONE, NONE, packets + 1)


def with_names(columns: Columns, names: TopicNames) -> Columns:
    """Return the columns of `pairs` with topic ids replaced by names."""
    topics = columns["topics"]
    assert isinstance(topics, Coded)
    values = [list(dict.fromkeys(map(names.name, each))) for each in topics.values]
    return {**columns, "topics": Coded(topics.codes, values)}


def _connections(
    table: Exchanges, ends: Callable[[Ints], list[tuple[str, str]]]
) -> tuple[Coded, Coded, Coded]:
    """Return number, client and broker of the connection."""
    codes, found = distinct(table.connection * 2 + table.client)
    numbers, clients = found >> 1, (found & 1).tolist()
    sides = list(zip(ends(numbers), clients, strict=True))
    return (
        Coded(codes, numbers.tolist()),
        Coded(codes, [both[client] for both, client in sides]),
        Coded(codes, [both[1 - client] for both, client in sides]),
    )


def api_names(table: Exchanges) -> Coded:
    """Return the names of the APIs."""
    return _apis(table)[1]


def _apis(table: Exchanges) -> tuple[Coded, Coded, Coded]:
    """Return key, name and version of the API."""
    none = np.where(table.token, _TOKEN, _NO_API)
    key_codes, keys = distinct(np.where(table.api_key == NONE, none, table.api_key))
    version_codes, versions = distinct(
        np.where(table.api_version == NONE, _NO_API, table.api_version)
    )
    codes, found = distinct(key_codes * len(versions) + version_codes)
    kinds = [
        (int(keys[code // len(versions)]), int(versions[code % len(versions)]))
        for code in found.tolist()
    ]
    return (
        Coded(codes, [None if key <= _NO_API else key for key, _ in kinds]),
        Coded(codes, [_api(key) for key, _ in kinds]),
        Coded(codes, [None if version == _NO_API else version for _, version in kinds]),
    )


def _api(key: int) -> str | None:
    if key <= _NO_API:
        return TOKEN if key == _TOKEN else None
    return api_name(key)
