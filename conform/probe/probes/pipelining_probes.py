"""Probes of pipelining, correlation ids and segmentation."""

from __future__ import annotations

from conform.probe.probe_registry import Probed, probe
from conform.probe.probe_reporter import LiveSay
from conform.probe.probe_target import ABOUT, NotJudged
from conform.probe.raw_connection import Line
from conform.probe.raw_exchange import Said, request_frame

_ROUNDS = 10
_WAIT_MS = 300


@probe(
    "P07",
    "Pipelined requests are answered in their order",
    source="SocketServer mutes a connection's channel until its request is answered",
    asks="Answers in the order of the requests, also where an earlier one takes longer.",
    example="a Fetch that waits 300 ms is overtaken by the ApiVersions behind it",
)
async def in_order(probed: Probed, say: LiveSay) -> None:
    """Send all requests, then receive all responses."""
    line, slow = await _line_and_slow(probed)
    try:
        sent = [slow] if slow else []
        for said in sent:
            line.send(said.request)
        for _ in range(_ROUNDS):
            sent.append(line.put("ApiVersions", probed.target.newest("ApiVersions"), ABOUT))
            sent.append(line.put("Metadata", probed.target.newest("Metadata"), {"topics": []}))
        for said in sent:
            await line.hear(said)
            if not say.answers(said):
                return
            assert said.answer is not None
            found = said.answer.correlation_id
            wanted = said.correlation_id
            if not say.holds(
                found == wanted,
                f"{said}, sent as {wanted}, where the answer to {found} came",
                said,
            ):
                return
    finally:
        line.close()


async def _line_and_slow(probed: Probed) -> tuple[Line, Said | None]:
    """Return a connection, and a Fetch request that waits, where a topic allows one."""
    if not probed.target.allow_writes:
        return await probed.target.line(), None
    try:
        topic = await probed.own.topic("quiet")
        version = probed.target.newest("Fetch")
    except NotJudged:
        return await probed.target.line(), None
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000}
    wanted = {"topic": topic.name, "topic_id": topic.topic_id, "partitions": [partition]}
    fields = {
        "replica_id": -1,
        "max_wait_ms": _WAIT_MS,
        "min_bytes": 1,
        "max_bytes": 1000,
        "topics": [wanted],
    }
    line = await probed.target.line(topic.node)
    return line, request_frame("Fetch", version, fields, line.next_id())


@probe(
    "P08",
    "Every correlation id comes back, and every client id is taken",
    source="ResponseHeader.json, RequestHeader.json (client_id is nullable)",
    asks="The correlation id of the request, whatever its client id.",
    example="correlation id -1 comes back as 0",
)
async def any_ids(probed: Probed, say: LiveSay) -> None:
    """Send unusual correlation ids and client ids."""
    version = probed.target.newest("ApiVersions")
    line = await probed.target.line()
    try:
        for number in (0, 1, 2**31 - 1, -1, -(2**31)):
            said = request_frame("ApiVersions", version, ABOUT, number)
            line.send(said.request)
            await _comes_back(await line.hear(said), say)
        for client_id in (None, "", "kafkashark-\N{SHARK}", "x" * 1000):
            said = request_frame("ApiVersions", version, ABOUT, line.next_id(), client_id=client_id)
            line.send(said.request)
            await _comes_back(await line.hear(said), say)
    finally:
        line.close()


async def _comes_back(said: Said, say: LiveSay) -> None:
    if say.answers(said):
        assert said.answer is not None
        found = said.answer.correlation_id
        say.holds(
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
async def in_pieces(probed: Probed, say: LiveSay) -> None:
    """Send a request byte by byte, and two requests at once."""
    version = probed.target.newest("ApiVersions")
    line = await probed.target.line()
    try:
        slowly = request_frame("ApiVersions", version, ABOUT, line.next_id())
        for byte in len(slowly.request).to_bytes(4, "big") + slowly.request:
            line.write(bytes((byte,)))
            await line.flushed()
        await _comes_back(await line.hear(slowly), say)
        pair = [request_frame("ApiVersions", version, ABOUT, line.next_id()) for _ in "ab"]
        line.write(b"".join(len(s.request).to_bytes(4, "big") + s.request for s in pair))
        for said in pair:
            await _comes_back(await line.hear(said), say)
    finally:
        line.close()
