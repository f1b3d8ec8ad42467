"""
Connection of one client.

Requests are processed in series, as in brokers. A connection thus buffers one request and one
answer at most, and a slow client does not delay others. After each request other connections get
their turn, however many more this one has sent.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from typing import Any

from construct import Container

from cluster.client.listener import UnfinishedFrames
from cluster.fields.refusal import RewriteError
from dissector.errors import DissectorError
from dissector.protocol.apis import KEYS
from dissector.protocol.error_codes import error_code
from dissector.protocol.headers import API_VERSIONS, SASL_AUTHENTICATE, SASL_HANDSHAKE
from dissector.protocol.messages import Message, decode_request
from serve.answers.answerer import UNSUPPORTED_VERSION, Answerer
from serve.answers.client_request import ClientRequest
from serve.faults.fault import Fault, FaultKind, Faults
from serve.forms.canonical_body import response_frame
from serve.recording.captured_cluster import ILLEGAL_SASL_STATE
from serve.server.sasl_server import MECHANISMS, SaslError, SaslServer
from serve.server.serve_options import ServeOptions

_SIZE = struct.Struct(">i")
_SMALLEST_REQUEST = 8
_PART_BYTES = 1 << 16
_DROPPED = "largest of too many bytes in unfinished requests"
_UNSUPPORTED_MECHANISM = error_code("UNSUPPORTED_SASL_MECHANISM")
_LOGIN_FAILED = error_code("SASL_AUTHENTICATION_FAILED")

Observer = Callable[[ClientRequest, bytes | None], None]
"""Called with each request and the frame of its answer, or None without an answer."""


class GarbageError(Exception):
    """A client sent bytes that are not a Kafka request."""


class ClientSession:
    """
    Serves one connection.

    Args:
        number: Number of the connection.
        streams: Reader and writer of the connection.
        answerer: Source of answers.
        options: Limits and latency.
        faults: Faults to inject.
        observe: Called after each exchange.
        unfinished: Counts the bytes of unfinished requests of all connections.
    """

    def __init__(
        self,
        number: int,
        streams: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        answerer: Answerer,
        options: ServeOptions,
        faults: Faults,
        observe: Observer,
        unfinished: UnfinishedFrames,
    ) -> None:
        self._number = number
        self._unfinished = unfinished
        self._is_dropped = False
        self._reader, self._writer = streams
        self._answerer = answerer
        self._options = options
        self._faults = faults
        self._observe = observe
        self._login: SaslServer | None = None
        self._sends_tokens = False
        ours: Any = self._writer.get_extra_info("sockname")
        theirs: Any = self._writer.get_extra_info("peername")
        self._local_host = str(ours[0]) if ours else ""
        self._addresses = (theirs, ours) if ours and theirs else None

    async def run(self) -> None:
        """
        Serve until the client closes the connection.

        Raises:
            GarbageError: The client sent an invalid request.
        """
        while True:
            frame = await self._next_frame()
            if frame is None:
                return
            if self._sends_tokens:
                await self._take_raw_token(frame)
            elif not await self._serve(decode_request(frame)):
                return
            await asyncio.sleep(0)  # neither reading nor writing waits while there is data or room

    def drop(self) -> None:
        """Close the connection, as its unfinished request is the largest of too many."""
        self._is_dropped = True
        self._writer.transport.abort()

    async def _next_frame(self) -> bytes | None:
        try:
            (size,) = _SIZE.unpack(await self._reader.readexactly(_SIZE.size))
            least = 0 if self._sends_tokens else _SMALLEST_REQUEST
            if not least <= size <= self._options.max_frame_bytes:
                raise GarbageError(f"invalid request size: {size:,} bytes")
            return await self._read(size)
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        finally:
            self._unfinished.hold(self, 0)

    async def _read(self, size: int) -> bytes:
        """
        Read the bytes of a request, and count them until they are all there.

        Raises:
            GarbageError: The connection was dropped.
            IncompleteReadError: The client closed it.
        """
        frame = bytearray()
        while len(frame) < size:
            part = await self._reader.read(min(size - len(frame), _PART_BYTES))
            if not part and not self._is_dropped:
                raise asyncio.IncompleteReadError(b"", size)
            frame += part
            self._unfinished.hold(self, len(frame))
            if self._is_dropped:
                raise GarbageError(_DROPPED)
        return bytes(frame)

    async def _serve(self, message: Message) -> bool:
        """Answer a request; return whether the connection stays open."""
        started = asyncio.get_running_loop().time()
        if message.api_key == API_VERSIONS and not self._answerer.cluster.offers(
            API_VERSIONS, message.shown_version or 0
        ):
            return await self._refuse_api_versions(message)
        if message.body is None or message.is_assumed:
            what = message.problems[0].what if message.problems else "unknown version"
            raise GarbageError(f"undecodable request: {what}")
        try:
            request = self._answerer.read(message, self._number, self._local_host)
        except RewriteError as error:
            raise GarbageError(str(error)) from None
        request.addresses = self._addresses
        fault = self._faults.take(request)
        if fault is not None and fault.kind is FaultKind.CLOSE:
            return False
        answer = await self._answer(request, fault)
        if answer is None:
            self._observe(request, None)
            return True
        frame = self._answerer.frame(request, answer)
        await self._delay(request, fault, started)
        if fault is not None and fault.kind is FaultKind.TRUNCATE:
            await self._send(_SIZE.pack(len(frame)) + frame[: len(frame) // 2])
            return False
        self._observe(request, frame)
        await self._send(_SIZE.pack(len(frame)) + frame)
        return True

    async def _answer(self, request: ClientRequest, fault: Fault | None) -> Container | None:
        if fault is not None and fault.kind is FaultKind.ERROR:
            return fault.answer(request)
        if request.api_key == SASL_HANDSHAKE:
            return self._start_login(request)
        if request.api_key == SASL_AUTHENTICATE:
            return self._authenticate(request.body.auth_bytes)
        return await self._answerer.answer(request)

    async def _delay(self, request: ClientRequest, fault: Fault | None, started: float) -> None:
        wanted_s = request.latency_s * self._options.latency
        passed_s = asyncio.get_running_loop().time() - started
        delay_s = max(0.0, wanted_s - passed_s)
        if fault is not None and fault.kind is FaultKind.DELAY:
            delay_s += fault.delay_s
        if delay_s > 0:
            await asyncio.sleep(delay_s)

    async def _refuse_api_versions(self, message: Message) -> bool:
        """Answer an unsupported version of ApiVersions in version 0 (KIP-511)."""
        request = ClientRequest(message, Container())
        body = await self._answerer.cluster.api_versions(request)
        body.error_code = UNSUPPORTED_VERSION
        body.api_keys = [each for each in body.api_keys if each.api_key == API_VERSIONS]
        frame = response_frame(message, body, self._answerer.state.recording.topics, 0)
        await self._send(_SIZE.pack(len(frame)) + frame)
        return True

    def _start_login(self, request: ClientRequest) -> Container:
        mechanism = request.body.mechanism
        if self._answerer.state.recording.cluster.refuses_logins:
            return Container(error_code=ILLEGAL_SASL_STATE, mechanisms=[])
        if mechanism not in MECHANISMS:
            return Container(error_code=_UNSUPPORTED_MECHANISM, mechanisms=list(MECHANISMS))
        self._login = SaslServer(mechanism, self._options.password)
        self._sends_tokens = request.version == 0
        return Container(error_code=0, mechanisms=list(MECHANISMS))

    def _authenticate(self, token: bytes) -> Container:
        login = self._login or SaslServer("PLAIN")
        try:
            return Container(error_code=0, error_message=None, auth_bytes=login.reply(token))
        except SaslError as error:
            return Container(error_code=_LOGIN_FAILED, error_message=str(error), auth_bytes=b"")

    async def _take_raw_token(self, token: bytes) -> None:
        assert self._login is not None
        try:
            reply = self._login.reply(token)
        except SaslError as error:
            raise GarbageError(str(error)) from None
        self._sends_tokens = not self._login.is_done
        await self._send(_SIZE.pack(len(reply)) + reply)

    async def _send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()


SASL_VERSIONS = {KEYS["SaslHandshake"]: (0, 1), KEYS["SaslAuthenticate"]: (0, 2)}
"""Versions of SASL APIs, which sessions implement."""

SESSION_ERRORS = (ConnectionError, asyncio.IncompleteReadError, TimeoutError, DissectorError)
"""Errors that end a single connection."""
