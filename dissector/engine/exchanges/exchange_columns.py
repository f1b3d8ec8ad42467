"""The columns of `pairs` for a whole window: the values of `Exchange.row`, in bulk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import TypeAlias

import numpy as np

from dissector.engine.exchanges.exchange import COLUMNS, TOKEN
from dissector.engine.exchanges.fact_columns import Asked, ExchangeSummaries
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


CONNECTION = "connection"
"""The column that is always made: texts are masked by what logins on their connection showed."""


def exchange_columns(
    table: Exchanges,
    summaries: ExchangeSummaries,
    files: Callable[[Ints], Coded],
    ends: Callable[[Ints], list[tuple[str, str]]],
    origins: Callable[[Ints], list[str | None]],
    logs: LogColumns = NO_LOGS,
    asked: Asked = None,
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
        asked: The columns to make, besides the number of the connection.
    """
    makers = {
        **_places(table, files, ends, origins),
        **_headers(table),
        **_times(table, logs),
        **_bodies(summaries),
    }
    accounts = logs.columns(table) if logs else {}
    names = [name for name in COLUMNS if asked is None or name in asked or name == CONNECTION]
    return {**{name: makers[name]() for name in names}, **accounts}


_Makers: TypeAlias = Mapping[str, Callable[[], Column]]
"""What makes columns, by their names."""


def _places(
    table: Exchanges,
    files: Callable[[Ints], Coded],
    ends: Callable[[Ints], list[tuple[str, str]]],
    origins: Callable[[Ints], list[str | None]],
) -> _Makers:
    request, response = table.request, table.response
    sides = cache(partial(_connections, table, ends))

    def capture() -> Column:
        return files(np.where(request.packet == NONE, response.packet, request.packet))

    def origin() -> Column:
        codes, numbers = distinct(table.connection)
        return Coded(codes, origins(numbers))

    return {
        "capture": capture,
        CONNECTION: lambda: sides()[0],
        "client": lambda: sides()[1],
        "broker": lambda: sides()[2],
        "origin": origin,
        "request_packet": lambda: Integers(_numbers(request.packet)),
        "response_packet": lambda: Integers(_numbers(response.packet)),
    }


def _headers(table: Exchanges) -> _Makers:
    apis = cache(partial(_apis, table))
    return {
        "api_key": lambda: apis()[0],
        "api": lambda: apis()[1],
        "api_version": lambda: apis()[2],
        "correlation_id": lambda: Integers(table.correlation_id),
        "status": lambda: Coded(table.status.astype(np.int64), STATUS),
    }


def _times(table: Exchanges, logs: LogColumns) -> _Makers:
    request, response = table.request, table.response
    is_logged = logs.is_logged(table)
    server_ns = np.where(is_logged, NONE, table.server_ns)
    both = (request.time_ns != NONE) & (response.time_ns != NONE)
    latency_ns = np.where(both, response.time_ns - request.time_ns, NONE)
    network_ns = np.where(server_ns == NONE, NONE, latency_ns - server_ns)
    return {
        "request_time_ns": lambda: Integers(request.time_ns),
        "response_time_ns": lambda: Integers(response.time_ns),
        "latency_ms": lambda: Milliseconds(latency_ns),
        "network_ms": lambda: Milliseconds(network_ns),
        "server_ms": lambda: Milliseconds(server_ns),
        "request_bytes": lambda: Integers(np.where(is_logged, NONE, request.size)),
        "response_bytes": lambda: Integers(np.where(is_logged, NONE, response.size)),
    }


def _bodies(summaries: ExchangeSummaries) -> _Makers:
    return {
        "client_id": lambda: Coded(summaries.client_id, summaries.client_ids),
        "errors": lambda: Coded(summaries.errors, [list(each) for each in summaries.error_lists]),
        "topics": lambda: Coded(summaries.topics, summaries.topic_lists),
        "problems": lambda: Coded(
            summaries.problems, [list(map(str, each)) for each in summaries.problem_lists]
        ),
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
    """Return columns of `pairs` with topic ids, if they have any, replaced by names."""
    topics = columns.get("topics")
    if topics is None:
        return columns
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
