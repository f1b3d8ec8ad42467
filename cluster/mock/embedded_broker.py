"""
The embedded broker: librdkafka's mock cluster behind a proxy that adapts it to Kafka.

The mock advertises the addresses of the proxy as its brokers' addresses. Messages that need no
compatibility shim pass unchanged; the mock keeps the order of the responses.
"""

from __future__ import annotations

import asyncio
import struct
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any, Self

from construct import Container

from cluster.client.listener import Listener, UnfinishedFrames
from cluster.client.loop_thread import LoopThread
from cluster.client.pending_request import codecs_of
from cluster.client.served_frames import ServedFrames
from cluster.client.transport import FrameProtocol, flush_closing
from cluster.conversion.resource_names import TopicIds
from cluster.conversion.version_converter import convert
from cluster.fields.refusal import RewriteError
from cluster.mock.kafka_compat import ADAPTED_APIS, SENT_AS, KafkaCompat
from cluster.mock.librdkafka_mock import MockCluster
from dissector.protocol.api import Kind
from dissector.protocol.apis import api
from dissector.protocol.headers import API_VERSIONS
from dissector.protocol.messages import Message, decode_request, decode_response

_HOST = "127.0.0.1"
_HEADER = struct.Struct(">hhi")
_CORRELATION = struct.Struct(">i")
_NULL_CLIENT_ID = struct.pack(">h", -1)
"""A client id that is null."""

_CONNECTING = "the mock is being connected"
_CLIENT_FULL = "the client does not read"
_MOCK_FULL = "the mock does not read"

_MAX_UNFINISHED_BYTES = 1 << 30

_FLUSH_S = 1.0
"""At the end, seconds for clients to read what was sent to them."""


class EmbeddedBroker:
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
        self._mock = MockCluster(brokers, topics)
        self._compat = KafkaCompat()
        self._connections: set[_ProxiedConnection] = set()
        self._listeners: list[Listener] = []
        # A replay itself may have many large requests under way.
        self._unfinished = UnfinishedFrames(_MAX_UNFINISHED_BYTES)
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """
        Start the cluster.

        Raises:
            ReplayError: librdkafka is not installed, or can't start the mock.
        """
        with ExitStack() as stack:
            stack.enter_context(self._mock)
            loop = stack.enter_context(LoopThread("embedded broker"))
            stack.callback(lambda: loop.run(self._stop()))
            for node, address in enumerate(self._mock.addresses, 1):
                mock_port = int(address.rpartition(":")[2])
                port = loop.run(self._serve(mock_port))
                self._mock.advertise(node, _HOST, port)
                self.addresses.append(f"{_HOST}:{port}")
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the cluster and close all connections."""
        self._stack.close()

    async def _serve(self, mock_port: int) -> int:
        """Start the proxy of a broker of the mock; return its port."""

        def accept() -> FrameProtocol:
            arguments = self._compat, self._unfinished, self._connections.discard
            front = _ProxiedConnection(mock_port, *arguments)
            self._connections.add(front)
            return front.client

        listener = Listener(accept)
        self._listeners.append(listener)
        return await listener.open(_HOST, 0)

    async def _stop(self) -> None:
        for listener in self._listeners:
            await listener.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*others, return_exceptions=True)  # connections being opened
        for front in list(self._connections):
            front.close()
        await flush_closing(_FLUSH_S)


class _ProxiedConnection:
    """
    One proxied connection: the client's side and the mock's side.

    Each side is read only while the other one takes what is sent to it.

    Attributes:
        client: The connection to the client.
    """

    def __init__(
        self,
        mock_port: int,
        compat: KafkaCompat,
        unfinished: UnfinishedFrames,
        on_end: Callable[[_ProxiedConnection], None],
    ) -> None:
        self.client = ServedFrames(
            self._forward_request, self._on_client_closed, unfinished, self._pause_for_client
        )
        self.client.pause(_CONNECTING)
        self._mock = ServedFrames(
            self._forward_response,
            self._on_mock_closed,
            UnfinishedFrames(sys.maxsize),  # it is trusted to finish
            self._pause_for_mock,
        )
        self._compat = compat
        self._on_end = on_end
        self._has_client_left = False
        self._pending: dict[int, tuple[Message, int, bytes]] = {}
        loop = asyncio.get_running_loop()
        self._connecting = loop.create_task(self._connect(mock_port))

    def close(self) -> None:
        """Close both sides."""
        self._connecting.cancel()
        self.client.close()
        self._mock.close()
        self._on_end(self)

    def _on_mock_closed(self, what: str, advice: str) -> None:
        self.close()

    def _on_client_closed(self, what: str, advice: str) -> None:
        """Close the write side to the mock after the client has gone; the mock then closes too."""
        self._has_client_left = True
        self._mock.write_eof()

    def _pause_for_client(self, is_full: bool) -> None:
        for side in (self.client, self._mock):
            (side.pause if is_full else side.resume)(_CLIENT_FULL)

    def _pause_for_mock(self, is_full: bool) -> None:
        (self.client.pause if is_full else self.client.resume)(_MOCK_FULL)

    async def _connect(self, mock_port: int) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.create_connection(lambda: self._mock, _HOST, mock_port)
        except OSError:
            self.close()  # the broker is down
            return
        self.client.resume(_CONNECTING)
        if self._has_client_left:
            self._mock.write_eof()

    def _forward_request(self, frame: bytes) -> None:
        if len(frame) >= _HEADER.size and _HEADER.unpack_from(frame)[0] in ADAPTED_APIS:
            frame = self._adapted_request(frame)
        self._mock.send(frame)

    def _adapted_request(self, frame: bytes) -> bytes:
        """Return the request for the mock; keep the state to adapt its response."""
        request = decode_request(frame)
        if request.body is None:
            return frame  # the mock handles it
        key, version, correlation_id = _HEADER.unpack_from(frame)
        instead = self._compat.respond_instead(request)
        if instead is not None:
            self._pending[correlation_id] = request, version, _response(request, instead)
            # An ApiVersions request keeps the place of our response in the order of responses.
            return _HEADER.pack(API_VERSIONS, 0, correlation_id) + _NULL_CLIENT_ID
        body = self._compat.adapt_request(request)
        sent_as = SENT_AS.get((key, version), version)
        if body is not request.body or sent_as != version:
            try:
                frame = _request(request, body, sent_as)
            except RewriteError:
                return frame  # only this version can express it
        self._pending[correlation_id] = request, sent_as, b""
        return frame

    def _forward_response(self, frame: bytes) -> None:
        mending = self._pending.pop(_CORRELATION.unpack_from(frame)[0], None)
        if mending is not None:
            request, sent_as, instead = mending
            frame = instead or self._adapted_response(request, sent_as, frame)
        if frame:
            self.client.send(frame)

    def _adapted_response(self, request: Message, sent_as: int, frame: bytes) -> bytes:
        """Return a response as of a real Kafka broker; empty if Kafka would not respond."""
        message = decode_response(frame, request.api_key, sent_as)
        if message.body is None or message.schema is None:
            return frame  # the client reports the problem
        for field in message.schema.fields:
            # The mock writes null for empty values even in fields that are not nullable.
            if message.body.get(field.name, ...) is None and sent_as not in field.null:
                message.body[field.name] = field.zero(sent_as)
        body = _converted("response", request, message.body, sent_as, request.api_version)
        response = self._compat.adapt_response(request, body)
        return b"" if response is None else _response(request, response)


def _request(request: Message, body: Container, version: int) -> bytes:
    """Encode a request in another version; raises `RewriteError` if that can't express it."""
    key = request.api_key or 0
    body = _converted("request", request, body, request.api_version, version)
    shape = codecs_of(key, version)
    (length,) = struct.unpack_from(">h", request.frame, _HEADER.size)
    name = request.frame[_HEADER.size : _HEADER.size + 2 + max(length, 0)]
    head = _HEADER.pack(key, version, request.correlation_id) + name
    return head + bytes(shape.request_header - 1) + shape.request.build(body)


def _response(request: Message, body: Any) -> bytes:
    """Encode the response to a request."""
    shape = codecs_of(request.api_key or 0, request.api_version or 0)
    head = _CORRELATION.pack(request.correlation_id) + bytes(shape.response_header)
    return head + shape.response.build(body)


def _converted(kind: Kind, request: Message, body: Any, old: int | None, new: int | None) -> Any:
    """Convert a body from one version to another."""
    found = api(request.api_key or 0)
    assert found is not None
    return convert(found.schema(kind), body, old or 0, new or 0, TopicIds(), [])
