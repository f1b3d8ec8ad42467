"""The requests of a connection whose responses have not come."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from dataclasses import dataclass

_MOST = 10_000
"""Requests that are remembered: Produce requests with acks = 0 never get a response."""


@dataclass(slots=True, eq=False)
class ForwardedRequest:
    """
    A request in flight.

    Attributes:
        correlation_id: Its id; None of a SASL token without a header.
        api_key: Its API.
        version: Its version.
        is_cut: Whether the client gets only half of the response.
        answer: Our answer in place of the broker's, with its size.
        own: Gets the response to a request of ours, in place of the client.
    """

    correlation_id: int | None
    api_key: int = -1
    version: int = -1
    is_cut: bool = False
    answer: bytes = b""
    own: asyncio.Future[bytes] | None = None


class RequestsInFlight:
    """
    Requests in the order in which a broker answers them.

    A response belongs to the oldest request with its id; older ones have got none (Produce with
    acks = 0, the last token of a Kerberos login).
    """

    def __init__(self) -> None:
        self._waiting: deque[ForwardedRequest] = deque()
        self._ids: Counter[int | None] = Counter()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, request: ForwardedRequest) -> None:
        """Add the newest request."""
        if len(self._waiting) >= _MOST:
            self._take_first()
        self._waiting.append(request)
        self._ids[request.correlation_id] += 1

    def take(self, correlation_id: int) -> ForwardedRequest | None:
        """Remove and return the request of a response; None if no request has its id."""
        if self._ids[correlation_id]:
            while self._waiting:
                found = self._take_first()
                if found.correlation_id == correlation_id:
                    return found
        elif self._waiting and self._waiting[0].correlation_id is None:
            return self._take_first()
        return None

    def take_answered(self) -> ForwardedRequest | None:
        """Remove and return the oldest request if it has an answer of ours."""
        return self._take_first() if self.begins_with_answer else None

    @property
    def begins_with_answer(self) -> bool:
        """Whether the oldest request has an answer of ours."""
        return bool(self._waiting and self._waiting[0].answer)

    def fail(self, error: Exception) -> None:
        """End all requests: their responses won't come."""
        while self._waiting:
            own = self._take_first().own
            if own is not None and not own.done():
                own.set_exception(error)

    def _take_first(self) -> ForwardedRequest:
        found = self._waiting.popleft()
        self._ids[found.correlation_id] -= 1
        if not self._ids[found.correlation_id]:
            del self._ids[found.correlation_id]
        return found
