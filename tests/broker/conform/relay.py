"""A relay to a broker that can add faults, to be found by rules."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from construct import Container

from dissector.protocol.expected_response import expects_response
from dissector.protocol.messages import Message, decode_request, decode_response
from tests.replay.support.closing import close_listeners

HANG_UP = "hang up"


@dataclass(frozen=True)
class Fault:
    """
    A fault added by a relay.

    Attributes:
        on_request: May change the body of a request on its way to the broker.
        on_answer: Gets request and response; may change its body, or return bytes to send instead
            of its frame, or `HANG_UP`.
        holds_on: Keep the connection open when the broker closes it.
        answers_all: Response to requests without an expected response.
    """

    on_request: Callable[[Message], None] = lambda _: None
    on_answer: Callable[[Message, Message], bytes | str | None] = lambda *_: None
    holds_on: bool = False
    answers_all: bytes = b""


NO_FAULT = Fault()


@dataclass
class _Connection:
    """One connection through the relay."""

    relay_port: int
    fault: Fault
    near: tuple[asyncio.StreamReader, asyncio.StreamWriter]
    far: tuple[asyncio.StreamReader, asyncio.StreamWriter]
    in_flight: deque[Message] = field(default_factory=deque)

    async def requests(self) -> None:
        """Relay requests to the broker."""
        reader, writer = self.near[0], self.far[1]
        while True:
            size = await reader.readexactly(4)
            count = int.from_bytes(size, "big", signed=True)
            if not 0 <= count < 100_000_000:
                writer.write(size)
                continue
            frame = await reader.readexactly(count)
            message = decode_request(frame)
            if expects_response(frame):
                self.in_flight.append(message)
            elif self.fault.answers_all:
                answer = frame[4:8] + self.fault.answers_all
                self.near[1].write(len(answer).to_bytes(4, "big") + answer)
            self.fault.on_request(message)
            sent = rewritten(message)
            writer.write(len(sent).to_bytes(4, "big") + sent)

    async def answers(self) -> None:
        """Relay responses to the client."""
        reader, writer = self.far[0], self.near[1]
        while True:
            frame = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
            request = self.in_flight.popleft()
            response = decode_response(frame, request.api_key, request.api_version)
            if response.body is not None:
                _point_here(response.body, self.relay_port)
            changed = self.fault.on_answer(request, response)
            if changed == HANG_UP:
                return
            sent = changed if isinstance(changed, bytes) else rewritten(response)
            writer.write(len(sent).to_bytes(4, "big") + sent)


async def _to_the_end(way: Coroutine[Any, Any, None]) -> None:
    with contextlib.suppress(OSError, EOFError):
        await way


def rewritten(message: Message) -> bytes:
    """Return the frame of a message with its current body."""
    if message.body is None or message.schema is None or message.problems:
        return message.frame
    codec = message.schema.codec(message.api_version or 0)
    return message.frame[: message.body_start] + codec.build(message.body)


def _point_here(body: Any, port: int) -> None:
    """Replace addresses by that of the relay."""
    if isinstance(body, list):
        for each in body:
            _point_here(each, port)
    elif isinstance(body, Container):
        if body.get("host"):
            body["host"], body["port"] = "127.0.0.1", port
        for each in body.values():
            _point_here(each, port)


@contextlib.asynccontextmanager
async def relaying(broker: str, fault: Fault = NO_FAULT) -> AsyncIterator[str]:
    """Relay to a broker until the block ends; yield the address of the relay."""
    host, _, port = broker.rpartition(":")
    tasks: set[asyncio.Task[None]] = set()

    async def serve(near: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> None:
        far = await asyncio.open_connection(host, int(port))
        here: int = server.sockets[0].getsockname()[1]
        connection = _Connection(here, fault, near, far)
        try:
            async with asyncio.TaskGroup() as ways:
                requests = ways.create_task(_to_the_end(connection.requests()))
                answers = ways.create_task(_to_the_end(connection.answers()))
                await asyncio.wait((requests, answers), return_when=asyncio.FIRST_COMPLETED)
                if fault.holds_on:
                    await requests
                requests.cancel()
                answers.cancel()
        finally:
            for _, writer in (near, far):
                writer.close()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.create_task(serve((reader, writer))))

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        await close_listeners([server])
        for task in tasks:
            task.cancel()
        for end in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(end, Exception):
                raise end
