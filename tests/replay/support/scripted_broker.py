"""A broker on loopback with scripted answers."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from construct import Container

from dissector.protocol.apis import KEYS, all_apis, api
from dissector.protocol.frame_limits import MAX_FRAME_BYTES
from dissector.protocol.headers import response_header_version
from dissector.protocol.messages import Message, decode_request
from dissector.protocol.schema import Field
from tests.replay.support.closing import close_listeners
from tests.waiting import PATIENCE_S

Answer = Mapping[str, Any] | bytes | None
"""A body, or the very bytes of an answer with its size, or silence."""

Answers = Mapping[str, Callable[[Message], Answer | Awaitable[Answer]]]
"""API -> what it is answered; nothing else on the connection is heard until then."""


HANG_UP = b"hang up"
"""Given as bytes: closes the connection."""


@dataclass
class Scripted:
    """A running scripted broker: address, received requests, all and open connections."""

    port: int
    requests: list[Message] = field(default_factory=list)
    connections: int = 0
    open: int = 0
    server: asyncio.Server | None = None
    accept: Callable[[asyncio.StreamReader, asyncio.StreamWriter], None] | None = None
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    def stop_listening(self) -> Answer:
        """Close all connections and accept no more; return the answer that closes the caller's."""
        assert self.server is not None
        self.server.close()
        for writer in self.writers:
            writer.transport.abort()
        return HANG_UP

    async def listen_again(self) -> None:
        """Accept connections again, at the same address."""
        assert self.accept is not None
        self.server = await asyncio.start_server(self.accept, "127.0.0.1", self.port)


@contextlib.asynccontextmanager
async def scripted(
    answers: Answers, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1"
) -> AsyncIterator[Scripted]:
    """Serve until the block ends; ApiVersions offers all declared versions by default."""
    script = {"ApiVersions": offers(), **answers}
    tasks: list[asyncio.Task[None]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        broker.connections += 1
        broker.writers.append(writer)
        broker.open += 1
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big")
                if size > MAX_FRAME_BYTES:
                    break  # as Kafka does
                message = decode_request(await reader.readexactly(size))
                broker.requests.append(message)
                reply = script[message.api or ""](message)
                answer = await reply if isinstance(reply, Awaitable) else reply
                if answer == HANG_UP:
                    break
                if answer is not None:
                    writer.write(answer if isinstance(answer, bytes) else framed(message, answer))
        except (OSError, asyncio.IncompleteReadError):
            pass  # closed by the client
        finally:
            broker.open -= 1
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.append(asyncio.create_task(serve(reader, writer)))

    server = await asyncio.start_server(accept, host, 0, ssl=tls)
    broker = Scripted(server.sockets[0].getsockname()[1], server=server, accept=accept)
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield broker
    finally:
        assert broker.server is not None
        await close_listeners([broker.server])
        for task in tasks:
            task.cancel()
        for end in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(end, Exception):
                raise end


def offers(**versions: tuple[int, int]) -> Callable[[Message], Answer]:
    """Answer ApiVersions with these versions, or all declared ones."""
    offered = {KEYS[name]: range_ for name, range_ in versions.items()} or {
        each.key: (each.request.versions.low, each.request.versions.high) for each in all_apis()
    }
    keys = [
        {"api_key": key, "min_version": low, "max_version": high}
        for key, (low, high) in offered.items()
    ]
    return lambda _: {"error_code": 0, "api_keys": keys, "throttle_time_ms": 0}


_LISTING_MEMBERS = ("DescribeGroups", "ConsumerGroupDescribe", "ShareGroupDescribe")


def single_broker(ports: list[int]) -> Answers:
    """Answer as a cluster of one broker, at the first of the ports; all transactions are open."""
    return {
        "Metadata": lambda _: _metadata(ports[0]),
        "FindCoordinator": lambda _: _coordinator(ports[0]),
        "ListOffsets": lambda _: {"topics": []},
        "Fetch": lambda _: {"responses": []},
        "DescribeTransactions": lambda _: {
            "transaction_states": [{"transaction_state": "Ongoing"}]
        },
        **dict.fromkeys(_LISTING_MEMBERS, lambda _: {"groups": []}),
    }


def _metadata(port: int) -> Answer:
    known: dict[str, Any] = {
        "error_code": 0,
        "partition_index": 0,
        "leader_id": 1,
        "leader_epoch": 0,
    }
    known |= {"replica_nodes": [1], "isr_nodes": [1], "offline_replicas": []}
    topic = {"error_code": 0, "name": "orders", "topic_id": UUID(int=1), "partitions": [known]}
    return {
        "throttle_time_ms": 0,
        "brokers": [{"node_id": 1, "host": "127.0.0.1", "port": port}],
        "controller_id": 1,
        "topics": [topic],
    }


def _coordinator(port: int) -> Answer:
    found = {"key": "g", "node_id": 1, "host": "127.0.0.1", "port": port, "error_code": 0}
    return {"throttle_time_ms": 0, "coordinators": [found]}


def framed(message: Message, body: Mapping[str, Any]) -> bytes:
    """Encode the response to a request."""
    assert message.api_key is not None
    assert message.api_version is not None
    assert message.correlation_id is not None
    found = api(message.api_key)
    assert found is not None
    tags = b"\0" * response_header_version(message.api_key, message.api_version)
    frame = message.correlation_id.to_bytes(4, "big") + tags
    filled_in = filled(found.response.fields, message.api_version, body)
    frame += found.response.codec(message.api_version).build(filled_in)
    return len(frame).to_bytes(4, "big") + frame


def filled(fields: tuple[Field, ...], version: int, body: Mapping[str, Any]) -> Container:
    """Complete a body with zeros, so that tests give only the relevant fields."""
    out = Container()
    for each in fields:
        if version in each.versions:
            value = body.get(each.name, ...)
            value = each.zero(version) if value is ... else value
            if each.fields and isinstance(value, list):
                value = [filled(each.fields, version, element) for element in value]
            out[each.name] = value
    return out
