"""Probes of pipelining, correlation ids and segmentation."""

from __future__ import annotations

from conform.probe.probe_registry import ProbeContext, probe
from conform.probe.probe_reporter import ProbeReporter
from conform.probe.probe_target import CLIENT_SOFTWARE, NotJudged
from conform.probe.raw_connection import RawConnection
from conform.probe.raw_exchange import RawExchange, encode_request

_ROUNDS = 10
_WAIT_MS = 300


@probe(
    "P07",
    "Pipelined requests answered out of order",
    source="SocketServer mutes a connection's channel until its request is answered",
    asks="Responses in the order of the requests, even where an earlier one takes longer.",
    example="a Fetch that waits 300 ms is overtaken by the ApiVersions after it",
)
async def probe_response_order(context: ProbeContext, reporter: ProbeReporter) -> None:
    """Send all requests, then receive all responses."""
    connection, slow_fetch = await _connection_and_slow_fetch(context)
    try:
        sent = [slow_fetch] if slow_fetch else []
        for exchange in sent:
            connection.send(exchange.request)
        for _ in range(_ROUNDS):
            sent.append(
                connection.send_request(
                    "ApiVersions", context.target.newest_version("ApiVersions"), CLIENT_SOFTWARE
                )
            )
            sent.append(
                connection.send_request(
                    "Metadata", context.target.newest_version("Metadata"), {"topics": []}
                )
            )
        for exchange in sent:
            await connection.receive_response(exchange)
            if not reporter.check_readable(exchange):
                return
            assert exchange.response is not None
            returned_id = exchange.response.correlation_id
            sent_id = exchange.correlation_id
            if not reporter.check(
                returned_id == sent_id,
                f"{exchange}, sent as {sent_id}, got the response to {returned_id}",
                exchange,
            ):
                return
    finally:
        connection.close()


async def _connection_and_slow_fetch(
    context: ProbeContext,
) -> tuple[RawConnection, RawExchange | None]:
    """Return a connection, and a Fetch request that waits, where a topic allows one."""
    if not context.target.allow_writes:
        return await context.target.open_connection(), None
    try:
        topic = await context.fixtures.topic("quiet")
        version = context.target.newest_version("Fetch")
    except NotJudged:
        return await context.target.open_connection(), None
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000}
    topic_fields = {"topic": topic.name, "topic_id": topic.topic_id, "partitions": [partition]}
    fields = {
        "replica_id": -1,
        "max_wait_ms": _WAIT_MS,
        "min_bytes": 1,
        "max_bytes": 1000,
        "topics": [topic_fields],
    }
    connection = await context.target.open_connection(topic.leader_id)
    return connection, encode_request("Fetch", version, fields, connection.next_correlation_id())


@probe(
    "P08",
    "Correlation id not returned, or client id rejected",
    source="ResponseHeader.json, RequestHeader.json (client_id is nullable)",
    asks="The correlation id of the request, for any client id.",
    example="correlation id -1 is returned as 0",
)
async def probe_unusual_ids(context: ProbeContext, reporter: ProbeReporter) -> None:
    """Send unusual correlation ids and client ids."""
    version = context.target.newest_version("ApiVersions")
    connection = await context.target.open_connection()
    try:
        for number in (0, 1, 2**31 - 1, -1, -(2**31)):
            exchange = encode_request("ApiVersions", version, CLIENT_SOFTWARE, number)
            connection.send(exchange.request)
            await _check_correlation_id(await connection.receive_response(exchange), reporter)
        for client_id in (None, "", "kafkashark-\N{SHARK}", "x" * 1000):
            exchange = encode_request(
                "ApiVersions",
                version,
                CLIENT_SOFTWARE,
                connection.next_correlation_id(),
                client_id=client_id,
            )
            connection.send(exchange.request)
            await _check_correlation_id(await connection.receive_response(exchange), reporter)
    finally:
        connection.close()


async def _check_correlation_id(exchange: RawExchange, reporter: ProbeReporter) -> None:
    if reporter.check_readable(exchange):
        assert exchange.response is not None
        returned_id = exchange.response.correlation_id
        reporter.check(
            returned_id == exchange.correlation_id,
            f"{exchange}, sent as {exchange.correlation_id}, came back as {returned_id}",
            exchange,
        )


@probe(
    "P09",
    "TCP segmentation of requests changes the responses",
    source="TCP is a stream; NetworkReceive continues to read",
    asks="Responses to a request sent byte by byte, and to two requests sent at once.",
    example="a request in two segments is not answered",
)
async def probe_segmentation(context: ProbeContext, reporter: ProbeReporter) -> None:
    """Send a request byte by byte, and two requests at once."""
    version = context.target.newest_version("ApiVersions")
    connection = await context.target.open_connection()
    try:
        bytewise = encode_request(
            "ApiVersions", version, CLIENT_SOFTWARE, connection.next_correlation_id()
        )
        for byte in len(bytewise.request).to_bytes(4, "big") + bytewise.request:
            connection.write(bytes((byte,)))
            await connection.drain()
        await _check_correlation_id(await connection.receive_response(bytewise), reporter)
        pair = [
            encode_request(
                "ApiVersions", version, CLIENT_SOFTWARE, connection.next_correlation_id()
            )
            for _ in "ab"
        ]
        connection.write(b"".join(len(s.request).to_bytes(4, "big") + s.request for s in pair))
        for exchange in pair:
            await _check_correlation_id(await connection.receive_response(exchange), reporter)
    finally:
        connection.close()
