"""A proxy that adds faults to the decoded requests and responses of a target."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from construct import Container

from cluster.client.loop_thread import LoopThread
from dissector.protocol.apis import api
from dissector.protocol.headers import response_header_version
from dissector.protocol.messages import Message, decode_request, decode_response
from tests.replay.support.closing import close_listeners
from tests.waiting import PATIENCE_S

HOST = "127.0.0.1"
MOCK_TIME = 1234
"""The append time in all responses of librdkafka's mock cluster; Kafka's is -1 for none."""

COPY_BIT = 1 << 30
"""Bit in the correlation ids of requests added by the proxy."""


class Fault:
    """A fault of a target; this base class has none."""

    def copies(self, request: Message) -> int:
        """Return how many times a request reaches the target."""
        return 1

    def invent_response(self, request: Message) -> dict[str, Any]:
        """Return the response to a request that does not reach the target."""
        raise NotImplementedError

    def change_request(self, request: Message) -> bool:
        """Change the body of a request that reaches the target; return whether it changed."""
        return False

    def change_response(self, request: Message, body: Container) -> None:
        """Change a response."""

    def is_held(self, request: Message) -> bool:
        """Return whether a response is held, to be swapped with the next one."""
        return False


@dataclass
class _Connection:
    """One connection: its open requests, and a held response."""

    requests: dict[int, Message] = field(default_factory=dict)
    held: tuple[Message, Container] | None = None


class FaultProxy:
    """
    A running proxy, one port for each broker.

    Args:
        targets: `host:port` of each broker.
        fault: The fault to add.
    """

    def __init__(self, targets: list[str], fault: Fault) -> None:
        self._targets = [
            (host, int(port)) for host, _, port in (t.rpartition(":") for t in targets)
        ]
        self._fault = fault
        self._ports: dict[int, int] = {}
        self._servers: list[asyncio.Server] = []

    async def serve(self) -> list[str]:
        """Listen; return the addresses."""
        for host, port in self._targets:

            async def accept(
                reader: asyncio.StreamReader,
                writer: asyncio.StreamWriter,
                to: tuple[str, int] = (host, port),
            ) -> None:
                with contextlib.suppress(asyncio.CancelledError):  # the proxy stops
                    await self._relay(reader, writer, *to)

            server = await asyncio.start_server(accept, HOST, 0)
            self._servers.append(server)
            self._ports[port] = server.sockets[0].getsockname()[1]
        return [f"{HOST}:{port}" for port in self._ports.values()]

    async def stop(self) -> None:
        """Close all connections."""
        await close_listeners(self._servers)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        for end in await asyncio.gather(*others, return_exceptions=True):
            if isinstance(end, Exception):
                raise end

    async def _relay(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, port: int
    ) -> None:
        connection = _Connection()
        there, back = await asyncio.open_connection(host, port)
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self._relay_requests(connection, reader, writer, back))
                both.create_task(self._relay_responses(connection, there, writer))
        except* (OSError, asyncio.IncompleteReadError):
            pass  # closed by either side
        finally:
            writer.transport.abort()
            back.transport.abort()

    async def _relay_requests(
        self,
        connection: _Connection,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        back: asyncio.StreamWriter,
    ) -> None:
        while True:
            frame = await _frame(reader)
            message = decode_request(frame)
            assert message.correlation_id is not None
            copies = self._fault.copies(message)
            if copies:
                connection.requests[message.correlation_id] = message
                if self._fault.change_request(message):
                    frame = frame[: message.body_start] + _built(message, message.body)
                back.write(_sized(frame))
            else:
                writer.write(_written(message, self._fault.invent_response(message)))
            for _ in range(1, copies):
                again = (message.correlation_id | COPY_BIT).to_bytes(4, "big")
                back.write(_sized(frame[:4] + again + frame[8:]))

    async def _relay_responses(
        self, connection: _Connection, there: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        while True:
            frame = await _frame(there)
            request = connection.requests.pop(int.from_bytes(frame[:4], "big"), None)
            if request is None:
                continue  # the response to a copy
            assert request.api_key is not None
            assert request.api_version is not None
            answered = decode_response(frame, request.api_key, request.api_version)
            if answered.body is None or request.api == "ApiVersions":
                writer.write(_sized(frame))
                continue
            self._redirect(answered.body)
            for topic in answered.body.get("responses") or () if request.api == "Produce" else ():
                for each in topic.partition_responses:
                    if each.log_append_time_ms == MOCK_TIME:
                        each.log_append_time_ms = -1
            self._fault.change_response(request, answered.body)
            if connection.held is not None:
                other, body = connection.held
                writer.write(_written(other, answered.body) + _written(request, body))
                connection.held = None
            elif connection.requests and self._fault.is_held(request):
                connection.held = request, answered.body
            else:
                writer.write(_written(request, answered.body))

    def _redirect(self, body: Container) -> None:
        """Replace the addresses of brokers in a response by those of the proxy."""
        for each in (body, *(body.get("brokers") or ()), *(body.get("coordinators") or ())):
            if each.get("port") in self._ports:
                each.host, each.port = HOST, self._ports[each.port]


@contextlib.contextmanager
def proxied(targets: list[str], fault: Fault) -> Iterator[str]:
    """Run a proxy until the block ends; yield its addresses."""
    proxy = FaultProxy(targets, fault)
    with LoopThread("fault proxy") as loop:
        try:
            yield ",".join(loop.run(proxy.serve(), PATIENCE_S))
        finally:
            loop.run(proxy.stop(), PATIENCE_S)


async def _frame(reader: asyncio.StreamReader) -> bytes:
    size = int.from_bytes(await reader.readexactly(4), "big")
    return await reader.readexactly(size)


def _sized(frame: bytes) -> bytes:
    return len(frame).to_bytes(4, "big") + frame


Answer = Callable[[Message], dict[str, Any]]


def _built(request: Message, body: Any) -> bytes:
    assert request.api_key is not None
    assert request.api_version is not None
    found = api(request.api_key)
    assert found is not None
    return found.request.codec(request.api_version).build(body)


def _written(request: Message, body: Any) -> bytes:
    assert request.api_key is not None
    assert request.api_version is not None
    assert request.correlation_id is not None
    found = api(request.api_key)
    assert found is not None
    tags = bytes(response_header_version(request.api_key, request.api_version))
    built = found.response.codec(request.api_version).build(body)
    return _sized(request.correlation_id.to_bytes(4, "big") + tags + built)
