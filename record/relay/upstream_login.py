"""Our login at a broker, on a connection that then carries the requests of a client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from construct import Container

from cluster.client.auth import Security, authenticate
from cluster.client.pending_request import LAST_CORRELATION_ID, codecs_of
from dissector.errors import ReplayError
from dissector.protocol.headers import API_VERSIONS
from dissector.protocol.messages import decode_response
from record.relay.conversation import Conversation
from record.relay.frame_splitter import SIZE_BYTES
from record.relay.requests_in_flight import ForwardedRequest

_CLIENT_ID = b"kafkashark"
_REAUTHENTICATE_AT = 0.85
"""Fraction of a session's lifetime before we log in again, as Java clients do (KIP-368)."""


class UpstreamLogin:
    """
    Logs in at a broker, and again before the session ends.

    Requests of ours stand in line with those of the client; their responses come here. While a
    login runs, requests of the client wait.

    Args:
        talk: The connection.
        address: The broker's address, for messages.
        security: The mechanism and its secret.
        timeout_s: Limit of one response.
        fail: Called with the reason when a later login fails.

    Attributes:
        address: See above.
        versions: The versions that the broker offers.
        at_request_end: Calls a function once no request of the client is on its way in part.
    """

    def __init__(
        self,
        talk: Conversation,
        address: str,
        security: Security,
        timeout_s: float,
        fail: Callable[[ReplayError], None],
    ) -> None:
        self.address = address
        self.versions: dict[int, tuple[int, int]] = {}
        self.at_request_end: Callable[[Callable[[], None]], None] = lambda start: start()
        self._talk = talk
        self._security = security
        self._timeout_s = timeout_s
        self._fail = fail
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """
        Log in; requests of the client are held back until then.

        Raises:
            ReplayError: The broker refuses, or gives no answer.
        """
        talk = self._talk
        if talk.held_back is None:
            talk.held_back = []
        talk.client.pause()
        try:
            if not self.versions:
                offered = await self.request_now(API_VERSIONS, 0, {})
                self.versions = {
                    each.api_key: (each.min_version, each.max_version) for each in offered.api_keys
                }
            lifetime_s = await authenticate(self, self._security)
        finally:
            talk.client.resume()
        talk.release()
        if lifetime_s:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(lifetime_s * _REAUTHENTICATE_AT, self._begin_again)

    def close(self) -> None:
        """Log in no more."""
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    async def request_now(self, api_key: int, version: int, body: Mapping[str, Any]) -> Container:
        """Send a request of ours, and return the body of its response; see `run`."""
        codecs = codecs_of(api_key, version)
        number = LAST_CORRELATION_ID + 1 + api_key % 8  # ids that clients do not use
        head = b"".join(part.to_bytes(2, "big") for part in (api_key, version))
        client_id = len(_CLIENT_ID).to_bytes(2, "big") + _CLIENT_ID
        header = head + number.to_bytes(4, "big") + client_id + bytes(codecs.request_header == 2)
        frame = header + codecs.request.build(body)
        answered: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._talk.in_flight.add(ForwardedRequest(number, api_key, version, own=answered))
        self._talk.broker.write(len(frame).to_bytes(SIZE_BYTES, "big") + frame)
        try:
            async with asyncio.timeout(self._timeout_s):
                response = decode_response(await answered, api_key, version)
        except TimeoutError:
            raise ReplayError(self.address, f"gave no answer for {self._timeout_s:g} s") from None
        if response.body is None:
            raise ReplayError(self.address, f"its answer can't be read: {response.problems[0]}")
        return response.body

    def _begin_again(self) -> None:
        # In the middle of a request the bytes of a login would be part of it.
        self.at_request_end(self._start)

    def _start(self) -> None:
        self._talk.held_back = []
        self._task = asyncio.get_running_loop().create_task(self._run_again())

    async def _run_again(self) -> None:
        try:
            await self.run()
        except ReplayError as error:
            self._fail(error)
