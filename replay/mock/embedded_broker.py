"""
The embedded broker: librdkafka's mock cluster behind a proxy that adapts it to Kafka.

The mock advertises the addresses of the proxy as those of its brokers. Messages that need no
compatibility shim pass unchanged; the mock keeps the order of the responses.
"""

from __future__ import annotations

import asyncio
import struct
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, Self, TypeVar

from dissector.protocol.api import Kind
from dissector.protocol.apis import api
from dissector.protocol.headers import API_VERSIONS
from dissector.protocol.messages import Message, decode_request, decode_response
from replay.client.pending_request import codecs_of
from replay.client.transport import FrameProtocol
from replay.mapping.resource_names import TopicIds
from replay.mapping.version_converter import convert
from replay.mock.kafka_compat import MENDED, SENT_AS, Mends
from replay.mock.librdkafka_mock import Mock
from replay.model.refusal import RewriteError

_HOST = "127.0.0.1"
_HEAD = struct.Struct(">hhi")
_CORRELATION = struct.Struct(">i")
_NOBODY = struct.pack(">h", -1)
"""A client id that is null."""

_T = TypeVar("_T")


class Embedded:
    """
    A mock cluster in this process, running from `__enter__` to `__exit__`.

        with Embedded(brokers=3, topics={"orders": 6}) as embedded:
            Cluster.connect(embedded.addresses)

    Attributes:
        addresses: `host:port` of each broker, by node id from 1.
    """

    def __init__(self, brokers: int = 1, topics: Mapping[str, int] | None = None) -> None:
        """
        Prepare a cluster.

        Args:
            brokers: Number of brokers.
            topics: Topic -> number of partitions.
        """
        self.addresses: list[str] = []
        self._mock = Mock(brokers, topics)
        self._mends = Mends()
        self._fronts: set[_Front] = set()
        self._servers: list[asyncio.Server] = []
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """
        Start the cluster.

        Raises:
            ReplayError: librdkafka is not installed, or can't start the mock.
        """
        with ExitStack() as stack:
            stack.enter_context(self._mock)
            loop = stack.enter_context(_running())
            stack.callback(_do, loop, self._stop)
            for node, address in enumerate(self._mock.addresses, 1):
                behind = int(address.rpartition(":")[2])
                port = _do(loop, partial(self._serve, behind))
                self._mock.advertise(node, _HOST, port)
                self.addresses.append(f"{_HOST}:{port}")
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the cluster and close all connections."""
        self._stack.close()

    async def _serve(self, behind: int) -> int:
        """Start the proxy of a broker of the mock; return its port."""

        def accept() -> FrameProtocol:
            front = _Front(behind, self._mends, self._fronts.discard)
            self._fronts.add(front)
            return front.client

        server = await asyncio.get_running_loop().create_server(accept, _HOST, 0)
        self._servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    async def _stop(self) -> None:
        for server in self._servers:
            server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*others, return_exceptions=True)  # connections being opened
        for front in list(self._fronts):
            front.close()


@contextmanager
def _running() -> Iterator[asyncio.AbstractEventLoop]:
    """Run an event loop in a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="embedded broker")
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def _do(loop: asyncio.AbstractEventLoop, what: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
    """Run a coroutine in an event loop of another thread; return its result."""
    return asyncio.run_coroutine_threadsafe(what(), loop).result()


class _Front:
    """
    One proxied connection: the client's side and the mock's side.

    Attributes:
        client: The connection to the client.
    """

    def __init__(self, behind: int, mends: Mends, on_end: Callable[[_Front], None]) -> None:
        self.client = FrameProtocol(self._ask, self._leave)
        self._mock = FrameProtocol(self._answer, self._end)
        self._mends = mends
        self._on_end = on_end
        self._early: list[bytes] | None = []
        self._is_left = False
        self._mending: dict[int, tuple[Message, int, bytes]] = {}
        loop = asyncio.get_running_loop()
        self._connecting = loop.create_task(self._connect(behind))

    def close(self) -> None:
        """Close both sides."""
        self._connecting.cancel()
        self.client.close()
        self._mock.close()
        self._on_end(self)

    def _end(self, what: str, advice: str) -> None:
        self.close()

    def _leave(self, what: str, advice: str) -> None:
        """Close the write side to the mock after the client has gone; the mock then closes too."""
        self._is_left = True
        if self._early is None:
            self._mock.write_eof()

    async def _connect(self, behind: int) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.create_connection(lambda: self._mock, _HOST, behind)
        except OSError:
            self.close()  # the broker is down
            return
        early, self._early = self._early or [], None
        for frame in early:
            self._mock.send(frame)
        if self._is_left:
            self._mock.write_eof()

    def _ask(self, frame: bytes) -> None:
        if len(frame) >= _HEAD.size and _HEAD.unpack_from(frame)[0] in MENDED:
            frame = self._mended(frame)
        if self._early is None:
            self._mock.send(frame)
        else:
            self._early.append(frame)

    def _mended(self, frame: bytes) -> bytes:
        """Return the request for the mock; keep the state to adapt its response."""
        asked = decode_request(frame)
        if asked.body is None:
            return frame  # the mock handles it
        key, version, correlation_id = _HEAD.unpack_from(frame)
        instead = self._mends.instead(asked)
        if instead is not None:
            self._mending[correlation_id] = asked, version, _response(asked, instead)
            # An ApiVersions request keeps the place of our response in the order of responses.
            return _HEAD.pack(API_VERSIONS, 0, correlation_id) + _NOBODY
        is_changed = self._mends.asked(asked)
        sent_as = SENT_AS.get((key, version), version)
        if is_changed or sent_as != version:
            try:
                frame = _request(asked, sent_as)
            except RewriteError:
                return frame  # only this version can express it
        self._mending[correlation_id] = asked, sent_as, b""
        return frame

    def _answer(self, frame: bytes) -> None:
        mending = self._mending.pop(_CORRELATION.unpack_from(frame)[0], None)
        if mending is not None:
            asked, sent_as, instead = mending
            frame = instead or self._right(asked, sent_as, frame)
        if frame:
            self.client.send(frame)

    def _right(self, asked: Message, sent_as: int, frame: bytes) -> bytes:
        """Return a response as of a real Kafka broker; empty if Kafka would not respond."""
        message = decode_response(frame, asked.api_key, sent_as)
        if message.body is None or message.schema is None:
            return frame  # the client reports the problem
        for field in message.schema.fields:
            # The mock writes null for empty values even in fields that are not nullable.
            if message.body.get(field.name, ...) is None and sent_as not in field.null:
                message.body[field.name] = field.zero(sent_as)
        body = _converted("response", asked, message.body, sent_as, asked.api_version)
        answer = self._mends.answered(asked, body)
        return b"" if answer is None else _response(asked, answer)


def _request(asked: Message, version: int) -> bytes:
    """Encode a request in another version; raises `RewriteError` if that can't express it."""
    key = asked.api_key or 0
    body = _converted("request", asked, asked.body, asked.api_version, version)
    shape = codecs_of(key, version)
    name = asked.frame[_HEAD.size : _HEAD.size + 2 + len((asked.client_id or "").encode())]
    head = _HEAD.pack(key, version, asked.correlation_id) + name
    return head + bytes(shape.request_header - 1) + shape.request.build(body)


def _response(asked: Message, body: Any) -> bytes:
    """Encode the response to a request."""
    shape = codecs_of(asked.api_key or 0, asked.api_version or 0)
    head = _CORRELATION.pack(asked.correlation_id) + bytes(shape.response_header)
    return head + shape.response.build(body)


def _converted(kind: Kind, asked: Message, body: Any, old: int | None, new: int | None) -> Any:
    """Convert a body from one version to another."""
    found = api(asked.api_key or 0)
    assert found is not None
    return convert(found.schema(kind), body, old or 0, new or 0, TopicIds(), [])
