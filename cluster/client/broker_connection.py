"""A connection to a broker of the target, with responses in the order of the requests."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Self

from construct import Container

from cluster.client.auth import Security, authenticate
from cluster.client.endpoint import Endpoint, connect
from cluster.client.in_flight import InFlightRequests, Liveness
from cluster.client.pending_request import Peer, PendingRequest, codecs_of, next_id
from cluster.client.transport import FrameProtocol
from cluster.client.version_negotiation import negotiate
from dissector.errors import ReplayError

CLIENT_ID = "kafkashark"
TIMEOUT_S = 10.0
"""Timeout in seconds for connecting to a broker, and for each response."""

_REQUEST_START = struct.Struct(">hhi")
"""The start of each request: API key, version, correlation id."""

_REAUTHENTICATE_AT = 0.85
"""Fraction of a session's lifetime before we authenticate again, as Java clients do."""


class BrokerConnection:
    """
    A connection to a broker, made by `BrokerConnection.open`.

    Attributes:
        address: `host:port`.
        peer: The broker, as requests in flight know it.
        versions: The APIs that the broker offers: key -> (lowest, highest version).
        features: The features that the broker supports, with their newest versions (KIP-584).
        failure: Why the connection is unusable; None while it is usable.
        deferred: Requests and frames held back during reauthentication; else None.
        last_correlation_id: The id of the newest request.
    """

    def __init__(
        self,
        address: str,
        security: Security,
        timeout_s: float,
        client_id: str,
        liveness: Liveness,
    ) -> None:
        self.address = address
        self.peer = Peer(self.address, self.drain)
        self.versions: dict[int, tuple[int, int]] = {}
        self.features: dict[str, int] = {}
        self.failure: ReplayError | None = None
        self._security = security
        self._client_id = client_id
        self._loop = asyncio.get_running_loop()
        self._in_flight = InFlightRequests(timeout_s, self._fail, liveness)
        take, take_many = self._in_flight.receive, self._in_flight.receive_many
        self._protocol = FrameProtocol(take, self._fail, on_data=take_many)
        self.deferred: list[tuple[PendingRequest, bytes]] | None = None
        self.last_correlation_id = 0
        self._reauthentication_timer: asyncio.TimerHandle | None = None
        self._reauthentication: asyncio.Task[None] | None = None

    @classmethod
    async def open(
        cls,
        endpoint: Endpoint,
        security: Security = Security(),  # noqa: B008 (frozen)
        timeout_s: float = TIMEOUT_S,
        client_id: str = CLIENT_ID,
        liveness: Liveness | None = None,
    ) -> Self:
        """
        Connect, negotiate API versions and authenticate.

        Args:
            endpoint: The broker, as `AllowedHosts.permit` returns it.
            security: Encryption and authentication.
            timeout_s: The timeout of each of these steps, and later of each response.
            client_id: The client id of our requests.
            liveness: Updated when responses arrive.

        Raises:
            ReplayError: The broker can't be reached, refuses us, or does not speak Kafka.
        """
        connection = cls(str(endpoint), security, timeout_s, client_id, liveness or Liveness())
        try:
            await connect(connection._protocol, endpoint, security.tls, timeout_s)
            connection.versions, connection.features = await negotiate(
                connection.address, connection.send
            )
            await connection._authenticate()
        except BaseException:
            connection._protocol.abort()
            connection.close()
            raise
        return connection

    @property
    def timeout_s(self) -> float:
        """The timeout for a response; may be changed."""
        return self._in_flight.timeout_s

    @timeout_s.setter
    def timeout_s(self, timeout_s: float) -> None:
        self._in_flight.timeout_s = timeout_s

    @property
    def in_flight(self) -> int:
        """The number of requests in flight, including those held back."""
        return len(self._in_flight) + len(self.deferred or ())

    def send(
        self,
        api_key: int,
        version: int,
        body: Mapping[str, Any],
        expects_response: bool = True,
        patience_s: float = 0.0,
        client_id: str | None = None,
    ) -> PendingRequest:
        """
        Send a request; requests leave in the order of the calls.

        Args:
            api_key: The API key.
            version: A version that the broker offers; this is not checked.
            body: The body, as the API's codec encodes it.
            expects_response: Whether a response is expected; false for Produce with acks = 0.
            patience_s: Time added to the timeout because the request lets the broker wait. The
                clock starts when all earlier responses have arrived.
            client_id: The request's client id; by default the connection's.

        Raises:
            ReplayError: The connection is lost.
            EncodeError: The body does not fit the version.
            DecodeError: The version is not known to us.
        """
        request = PendingRequest(self.peer, api_key, version, patience_s)
        return self._send(request, body, expects_response, self.deferred, client_id)

    async def request(
        self,
        api_key: int,
        version: int,
        body: Mapping[str, Any],
        expects_response: bool = True,
        patience_s: float = 0.0,
        client_id: str | None = None,
    ) -> Container | None:
        """Send a request and wait for its response; see `send` and `PendingRequest.response`."""
        return await self.send(
            api_key, version, body, expects_response, patience_s, client_id
        ).response()

    async def drain(self) -> None:
        """
        Wait until the broker has taken most of the data sent.

        Raises:
            ReplayError: It does not do so before the timeout.
        """
        try:
            async with asyncio.timeout(self.timeout_s):
                await self._protocol.drain()
        except TimeoutError:
            self._fail(f"took no bytes for {self.timeout_s:g} s")
        self._raise_if_failed()

    def close(self) -> None:
        """Close the connection; requests in flight fail."""
        self._in_flight.stop_timer()
        if self._reauthentication_timer is not None:
            self._reauthentication_timer.cancel()
        if self._reauthentication is not None:
            self._reauthentication.cancel()
        if self.failure is None:
            self._protocol.close()
            self._close_with(ReplayError(self.address, "we closed the connection"))

    async def _authenticate(self) -> None:
        if not self._security.mechanism:
            return
        lifetime_s = await authenticate(self, self._security)
        if lifetime_s:
            self._reauthentication_timer = self._loop.call_later(
                lifetime_s * _REAUTHENTICATE_AT, self._reauthenticate
            )

    def _reauthenticate(self) -> None:
        """Authenticate again; requests are held back until that is done (KIP-368)."""
        self.deferred = []
        self._reauthentication = self._loop.create_task(self._reauthenticate_and_resume())

    async def _reauthenticate_and_resume(self) -> None:
        try:
            await self._authenticate()
        except ReplayError as error:
            self._fail(f"authentication could not be renewed: {error.what}", error.advice)
            return
        deferred, self.deferred = self.deferred or [], None
        for request, frame in deferred:
            self._transmit(request, frame)

    async def request_now(self, api_key: int, version: int, body: Mapping[str, Any]) -> Container:
        """Send an authentication request, which is never held back, and return the response."""
        request = self._send(PendingRequest(self.peer, api_key, version, 0.0), body, True, None)
        response = await request.response()
        assert response is not None
        return response

    def _send(
        self,
        request: PendingRequest,
        body: Mapping[str, Any],
        expects_response: bool,
        deferred: list[tuple[PendingRequest, bytes]] | None,
        client_id: str | None = None,
    ) -> PendingRequest:
        self._raise_if_failed()
        if expects_response:
            request.frame = self._loop.create_future()
        header = self.header(request.api_key, request.version, client_id)
        body_bytes = codecs_of(request.api_key, request.version).request.build(body)
        self._enqueue(request, (header, body_bytes), expects_response, deferred)
        return request

    def header(self, api_key: int, version: int, client_id: str | None = None) -> bytes:
        """Return the part of a request header after the correlation id."""
        name = self._client_id if client_id is None else client_id
        return _header_ends(name)[codecs_of(api_key, version).request_header]

    @property
    def can_send(self) -> bool:
        """Whether a request would be sent immediately."""
        return self.failure is None and self.deferred is None

    @property
    def next_id(self) -> int:
        """The correlation id of the next request."""
        return next_id(self.last_correlation_id)

    def send_batch(self, request: PendingRequest, count: int, data: bytes) -> None:
        """
        Send requests of one shape that all get responses; `can_send` must hold.

        Args:
            request: The request object shared by all of them.
            count: The number of requests.
            data: The bytes of all requests, with sizes, and correlation ids from `next_id` on.
        """
        request.correlation_id = self.next_id
        self.last_correlation_id = next_id(self.last_correlation_id, count)
        self._in_flight.add(request, count)
        self._protocol.send_bytes(data)

    def _enqueue(
        self,
        request: PendingRequest,
        parts: Sequence[bytes],
        expects_response: bool,
        deferred: list[tuple[PendingRequest, bytes]] | None,
    ) -> None:
        request.expects_response = expects_response
        request.correlation_id = self.last_correlation_id = next_id(self.last_correlation_id)
        frame = b"".join(
            (
                _REQUEST_START.pack(request.api_key, request.version, self.last_correlation_id),
                *parts,
            )
        )
        if deferred is None:
            self._transmit(request, frame)
        else:
            deferred.append((request, frame))

    def _transmit(self, request: PendingRequest, frame: bytes) -> None:
        if request.expects_response:
            self._in_flight.add(request)
        self._protocol.send(frame)

    def _raise_if_failed(self) -> None:
        failure = self.failure
        if failure is not None:
            raise ReplayError(failure.address, failure.what, failure.advice)

    def _fail(self, what: str, advice: str = "") -> None:
        if self.failure is None:
            self._protocol.abort()
            first = self._in_flight.first
            # Reasons about a response ("response", "responds") name the request themselves.
            suffix = "" if first is None or "respon" in what else f" while {first} was in flight"
            reason = what + suffix
            self._close_with(ReplayError(self.address, reason, advice))

    def _close_with(self, failure: ReplayError) -> None:
        self.failure = failure
        unanswered = [*self._in_flight.drain(), *(request for request, _ in self.deferred or ())]
        self.deferred = None
        for request in unanswered:
            request.fail(ReplayError(failure.address, failure.what, failure.advice))


@lru_cache(maxsize=1024)
def _header_ends(client_id: str) -> tuple[bytes, bytes, bytes]:
    """Return the header bytes after the correlation id, by header version."""
    name = client_id.encode(errors="surrogateescape")
    classic = struct.pack(">h", len(name)) + name
    return b"", classic, classic + b"\0"
