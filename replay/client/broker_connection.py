"""A connection to a broker of the target, with responses in the order of the requests."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Self

from construct import Container

from dissector.errors import ReplayError
from replay.client.auth import Security, authenticate
from replay.client.in_flight import Pulse, Waiting
from replay.client.pending_request import Asked, Peer, next_id, shape_of
from replay.client.transport import Connection, connect, written
from replay.client.version_negotiation import negotiate

CLIENT_ID = "kafkashark"
TIMEOUT_S = 10.0
"""Timeout in seconds for connecting to a broker, and for each response."""

_HEAD = struct.Struct(">hhi")
"""The start of each request: API key, version, correlation id."""

_RENEW_AT = 0.85
"""Fraction of a session's lifetime after which we authenticate again, as Java clients do."""


class Link:
    """
    A connection to a broker, made by `Link.open`.

    Attributes:
        address: `host:port`.
        peer: The broker, as requests in flight know it.
        versions: The APIs that the broker offers: key -> (lowest, highest version).
        features: The features that the broker supports, with their newest versions (KIP-584).
        failure: Why the connection is unusable; None while it is usable.
    """

    def __init__(
        self,
        host: str,
        port: int,
        security: Security,
        timeout_s: float,
        client_id: str,
        pulse: Pulse,
    ) -> None:
        self.address = written(host, port)
        self.peer = Peer(self.address, self.room)
        self.versions: dict[int, tuple[int, int]] = {}
        self.features: dict[str, int] = {}
        self.failure: ReplayError | None = None
        self._security = security
        self._client_id = client_id
        self._loop = asyncio.get_running_loop()
        self._waiting = Waiting(timeout_s, self._fail, pulse)
        take, take_many = self._waiting.take, self._waiting.take_many
        self._connection = Connection(take, self._fail, on_data=take_many)
        self._held: list[tuple[Asked, bytes]] | None = None
        self._last_id = 0
        self._renewal: asyncio.TimerHandle | None = None
        self._renewing: asyncio.Task[None] | None = None

    @classmethod
    async def open(
        cls,
        host: str,
        port: int,
        security: Security = Security(),  # noqa: B008 (frozen)
        timeout_s: float = TIMEOUT_S,
        client_id: str = CLIENT_ID,
        pulse: Pulse | None = None,
    ) -> Self:
        """
        Connect, negotiate API versions and authenticate.

        Args:
            host: The broker's host.
            port: The broker's port.
            security: Encryption and authentication.
            timeout_s: The timeout of each of these steps, and later of each response.
            client_id: The client id of our requests.
            pulse: Updated when responses arrive.

        Raises:
            ReplayError: The broker can't be reached, refuses us, or is no Kafka broker.
        """
        link = cls(host, port, security, timeout_s, client_id, pulse or Pulse())
        try:
            await connect(link._connection, host, port, security.tls, timeout_s)
            link.versions, link.features = await negotiate(link.address, link.send)
            await link._authenticate()
        except BaseException:
            link._connection.abort()
            link.close()
            raise
        return link

    @property
    def timeout_s(self) -> float:
        """The timeout for a response; may be changed."""
        return self._waiting.timeout_s

    @timeout_s.setter
    def timeout_s(self, timeout_s: float) -> None:
        self._waiting.timeout_s = timeout_s

    @property
    def in_flight(self) -> int:
        """The number of requests in flight, including those held back."""
        return len(self._waiting) + len(self._held or ())

    def send(
        self,
        api_key: int,
        version: int,
        body: Mapping[str, Any],
        due: bool = True,
        patience_s: float = 0.0,
        client_id: str | None = None,
    ) -> Asked:
        """
        Send a request; requests leave in the order of the calls.

        Args:
            api_key: The API key.
            version: A version that the broker offers; this is not checked.
            body: The body, as the API's codec encodes it.
            due: Whether a response is expected; false for Produce with acks = 0.
            patience_s: Time added to the timeout because the request asks the broker to wait. The
                clock starts when all earlier responses have arrived.
            client_id: The request's client id; by default that of the connection.

        Raises:
            ReplayError: The connection is lost.
            EncodeError: The body does not fit the version.
            DecodeError: The version is not known to us.
        """
        asked = Asked(self.peer, api_key, version, patience_s)
        return self._send(asked, body, due, self._held, client_id)

    async def ask(
        self,
        api_key: int,
        version: int,
        body: Mapping[str, Any],
        due: bool = True,
        patience_s: float = 0.0,
        client_id: str | None = None,
    ) -> Container | None:
        """Send a request and wait for its response; see `send` and `Asked.answer`."""
        return await self.send(api_key, version, body, due, patience_s, client_id).answer()

    async def room(self) -> None:
        """
        Wait until the broker has taken most of the data sent.

        Raises:
            ReplayError: It does not do so before the timeout.
        """
        try:
            async with asyncio.timeout(self.timeout_s):
                await self._connection.room()
        except TimeoutError:
            self._fail(f"took no bytes for {self.timeout_s:g} s")
        self._check()

    def close(self) -> None:
        """Close the connection; requests in flight fail."""
        self._waiting.look_no_more()
        if self._renewal is not None:
            self._renewal.cancel()
        if self._renewing is not None:
            self._renewing.cancel()
        if self.failure is None:
            self._connection.close()
            self._end(ReplayError(self.address, "we closed the connection"))

    async def _authenticate(self) -> None:
        if not self._security.mechanism:
            return
        lifetime_s = await authenticate(self, self._security)
        if lifetime_s:
            self._renewal = self._loop.call_later(lifetime_s * _RENEW_AT, self._renew)

    def _renew(self) -> None:
        """Authenticate again; requests are held back until that is done (KIP-368)."""
        self._held = []
        self._renewing = self._loop.create_task(self._renew_and_go_on())

    async def _renew_and_go_on(self) -> None:
        try:
            await self._authenticate()
        except ReplayError as error:
            self._fail(f"authentication could not be renewed: {error.what}", error.advice)
            return
        held, self._held = self._held or [], None
        for asked, frame in held:
            self._put(asked, frame)

    async def ask_now(self, api_key: int, version: int, body: Mapping[str, Any]) -> Container:
        """Send an authentication request, which is never held back, and return the response."""
        asked = self._send(Asked(self.peer, api_key, version, 0.0), body, True, None)
        answer = await asked.answer()
        assert answer is not None
        return answer

    def _send(
        self,
        asked: Asked,
        body: Mapping[str, Any],
        due: bool,
        held: list[tuple[Asked, bytes]] | None,
        client_id: str | None = None,
    ) -> Asked:
        self._check()
        if due:
            asked.frame = self._loop.create_future()
        header = self.header(asked.api_key, asked.version, client_id)
        built = shape_of(asked.api_key, asked.version).request.build(body)
        self._hand_over(asked, (header, built), due, held)
        return asked

    def header(self, api_key: int, version: int, client_id: str | None = None) -> bytes:
        """Return the part of a request header after the correlation id."""
        name = self._client_id if client_id is None else client_id
        return _header_ends(name)[shape_of(api_key, version).request_header]

    @property
    def is_free(self) -> bool:
        """Whether a request would be sent at once."""
        return self.failure is None and self._held is None

    @property
    def next_id(self) -> int:
        """The correlation id of the next request."""
        return next_id(self._last_id)

    def trace(self, asked: Asked, count: int, data: bytes) -> None:
        """
        Send requests of one shape that all get responses; the link must be free.

        Args:
            asked: The request object shared by all of them.
            count: The number of requests.
            data: The bytes of all requests, with sizes, and correlation ids from `next_id` on.
        """
        asked.correlation_id = self.next_id
        self._last_id = next_id(self._last_id, count)
        self._waiting.begin(asked, count)
        self._connection.send_bytes(data)

    def _hand_over(
        self,
        asked: Asked,
        pieces: Sequence[bytes],
        due: bool,
        held: list[tuple[Asked, bytes]] | None,
    ) -> None:
        asked.is_due = due
        asked.correlation_id = self._last_id = next_id(self._last_id)
        frame = b"".join((_HEAD.pack(asked.api_key, asked.version, self._last_id), *pieces))
        if held is None:
            self._put(asked, frame)
        else:
            held.append((asked, frame))

    def _put(self, asked: Asked, frame: bytes) -> None:
        if asked.is_due:
            self._waiting.begin(asked)
        self._connection.send(frame)

    def _check(self) -> None:
        failure = self.failure
        if failure is not None:
            raise ReplayError(failure.address, failure.what, failure.advice)

    def _fail(self, what: str, advice: str = "") -> None:
        if self.failure is None:
            self._connection.abort()
            first = self._waiting.first
            waiting = f" while {first} was unanswered" if first is not None else ""
            said = what if "answer" in what else what + waiting
            self._end(ReplayError(self.address, said, advice))

    def _end(self, failure: ReplayError) -> None:
        self.failure = failure
        unanswered = [*self._waiting.end(), *(asked for asked, _ in self._held or ())]
        self._held = None
        for asked in unanswered:
            asked.lose(ReplayError(failure.address, failure.what, failure.advice))


@lru_cache(maxsize=1024)
def _header_ends(client_id: str) -> tuple[bytes, bytes, bytes]:
    """Return the header bytes after the correlation id, by header version."""
    name = client_id.encode(errors="surrogateescape")
    classic = struct.pack(">h", len(name)) + name
    return b"", classic, classic + b"\0"
