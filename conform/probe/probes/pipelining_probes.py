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
    "Pipelined requests are answered in their order",
    source="SocketServer mutes a connection's channel until its request is answered",
    asks="Answers in the order of the requests, also where an earlier one takes longer.",
    example="a Fetch that waits 300 ms is overtaken by the ApiVersions behind it",
)
async def response_order(probed: ProbeContext, say: ProbeReporter) -> None:
    """Send all requests, then receive all responses."""
    line, slow = await _connection_and_slow_fetch(probed)
    try:
        sent = [slow] if slow else []
        for said in sent:
            line.send(said.request)
        for _ in range(_ROUNDS):
            sent.append(
                line.send_request(
                    "ApiVersions", probed.target.newest_version("ApiVersions"), CLIENT_SOFTWARE
                )
            )
            sent.append(
                line.send_request(
                    "Metadata", probed.target.newest_version("Metadata"), {"topics": []}
                )
            )
        for said in sent:
            await line.receive_response(said)
            if not say.check_readable(said):
                return
            assert said.response is not None
            found = said.response.correlation_id
            wanted = said.correlation_id
            if not say.check(
                found == wanted,
                f"{said}, sent as {wanted}, where the answer to {found} came",
                said,
            ):
                return
    finally:
        line.close()


async def _connection_and_slow_fetch(
    probed: ProbeContext,
) -> tuple[RawConnection, RawExchange | None]:
    """Return a connection, and a Fetch request that waits, where a topic allows one."""
    if not probed.target.allow_writes:
        return await probed.target.open_connection(), None
    try:
        topic = await probed.fixtures.topic("quiet")
        version = probed.target.newest_version("Fetch")
    except NotJudged:
        return await probed.target.open_connection(), None
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000}
    wanted = {"topic": topic.name, "topic_id": topic.topic_id, "partitions": [partition]}
    fields = {
        "replica_id": -1,
        "max_wait_ms": _WAIT_MS,
        "min_bytes": 1,
        "max_bytes": 1000,
        "topics": [wanted],
    }
    line = await probed.target.open_connection(topic.leader_id)
    return line, encode_request("Fetch", version, fields, line.next_correlation_id())


@probe(
    "P08",
    "Every correlation id comes back, and every client id is taken",
    source="ResponseHeader.json, RequestHeader.json (client_id is nullable)",
    asks="The correlation id of the request, whatever its client id.",
    example="correlation id -1 comes back as 0",
)
async def unusual_ids(probed: ProbeContext, say: ProbeReporter) -> None:
    """Send unusual correlation ids and client ids."""
    version = probed.target.newest_version("ApiVersions")
    line = await probed.target.open_connection()
    try:
        for number in (0, 1, 2**31 - 1, -1, -(2**31)):
            said = encode_request("ApiVersions", version, CLIENT_SOFTWARE, number)
            line.send(said.request)
            await _check_correlation_id(await line.receive_response(said), say)
        for client_id in (None, "", "kafkashark-\N{SHARK}", "x" * 1000):
            said = encode_request(
                "ApiVersions",
                version,
                CLIENT_SOFTWARE,
                line.next_correlation_id(),
                client_id=client_id,
            )
            line.send(said.request)
            await _check_correlation_id(await line.receive_response(said), say)
    finally:
        line.close()


async def _check_correlation_id(said: RawExchange, say: ProbeReporter) -> None:
    if say.check_readable(said):
        assert said.response is not None
        found = said.response.correlation_id
        say.check(
            found == said.correlation_id,
            f"{said}, sent as {said.correlation_id}, came back as {found}",
            said,
        )


@probe(
    "P09",
    "Where a frame is cut into segments does not matter",
    source="TCP is a stream; NetworkReceive reads on",
    asks="Answers to a request sent byte by byte, and to two sent in one piece.",
    example="a request in two segments is not answered",
)
async def segmentation(probed: ProbeContext, say: ProbeReporter) -> None:
    """Send a request byte by byte, and two requests at once."""
    version = probed.target.newest_version("ApiVersions")
    line = await probed.target.open_connection()
    try:
        slowly = encode_request("ApiVersions", version, CLIENT_SOFTWARE, line.next_correlation_id())
        for byte in len(slowly.request).to_bytes(4, "big") + slowly.request:
            line.write(bytes((byte,)))
            await line.drain()
        await _check_correlation_id(await line.receive_response(slowly), say)
        pair = [
            encode_request("ApiVersions", version, CLIENT_SOFTWARE, line.next_correlation_id())
            for _ in "ab"
        ]
        line.write(b"".join(len(s.request).to_bytes(4, "big") + s.request for s in pair))
        for said in pair:
            await _check_correlation_id(await line.receive_response(said), say)
    finally:
        line.close()
