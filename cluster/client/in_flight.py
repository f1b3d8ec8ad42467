"""Requests in flight on a connection; responses arrive in the order of the requests."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from cluster.client.pending_request import PendingRequest


@dataclass(slots=True)
class Liveness:
    """
    Time of the last response on connections that share this object.

    Attributes:
        last_response_ns: Time of the newest response, by `time.perf_counter_ns`.
    """

    last_response_ns: int = 0


class InFlightRequests:
    """
    The requests of a connection that have no response yet.

    Args:
        timeout_s: The timeout for a response.
        fail: Called with the reason and advice if a response is wrong or late.
        liveness: Updated when responses arrive.

    Attributes:
        timeout_s: See above; may be changed.
    """

    def __init__(
        self, timeout_s: float, fail: Callable[[str, str], None], liveness: Liveness
    ) -> None:
        self.timeout_s = timeout_s
        self._fail = fail
        self._liveness = liveness
        self._loop = asyncio.get_running_loop()
        self._queue: deque[PendingRequest] = deque()
        self._waiting_since_ns = 0
        self._timer: asyncio.TimerHandle | None = None
        self._timer_timeout_s = 0.0

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def first(self) -> PendingRequest | None:
        """The request of the next response; None without requests."""
        return self._queue[0] if self._queue else None

    def add(self, request: PendingRequest, count: int = 1) -> None:
        """Queue a request until its response; `count` times for a batch of that many requests."""
        if not self._queue:
            self._waiting_since_ns = time.perf_counter_ns()
            self._set_timer(request)
        self._queue.extend([request] * count)

    def drain(self) -> list[PendingRequest]:
        """Stop the timer; remove and return the requests without a response."""
        self.stop_timer()
        left = list(self._queue)
        self._queue.clear()
        return left

    def stop_timer(self) -> None:
        """Stop checking for late responses."""
        if self._timer is not None:
            self._timer.cancel()

    def receive_many(self, data: bytes | bytearray, start: int) -> int:
        """
        Pass received bytes to requests that process responses in bulk.

        Args:
            data: The received bytes.
            start: Offset of the first response in them, at its size field.

        Returns:
            The offset after the processed responses.
        """
        queue = self._queue
        while queue and start < len(data):
            request = queue[0]
            now_ns = time.perf_counter_ns()
            count, start = request.receive_many(data, start, now_ns)
            if not count:
                break
            self._waiting_since_ns = self._liveness.last_response_ns = now_ns
            for _ in range(count):
                queue.popleft()
            self._shorten_timer(request)
        return start

    def receive(self, frame: bytes) -> None:
        """Pass a response to the oldest request."""
        queue = self._queue
        correlation_id = int.from_bytes(frame[:4], "big", signed=True)
        if not queue:
            self._fail(f"sent a response without a request (correlation id {correlation_id})", "")
            return
        request = queue[0]
        if correlation_id != request.correlation_id:
            self._fail(
                f"sent a response with correlation id {correlation_id} instead of "
                f"{request.correlation_id} ({request})",
                "",
            )
            return
        queue.popleft()
        request.response_ns = self._waiting_since_ns = self._liveness.last_response_ns = (
            time.perf_counter_ns()
        )
        self._shorten_timer(request)
        request.receive(frame)

    def _shorten_timer(self, response: PendingRequest) -> None:
        """Restart the timer if the next request allows less time than the previous one."""
        if self._queue and self._queue[0].patience_s < response.patience_s:
            self._set_timer(self._queue[0])

    def _set_timer(self, request: PendingRequest) -> None:
        """Start the timer for the next response, unless it fires early enough already."""
        allowed_s = self.timeout_s + request.patience_s
        if self._timer is not None:
            if allowed_s >= self._timer_timeout_s:
                return  # an earlier timer is set
            self._timer.cancel()
        self._timer_timeout_s = allowed_s
        self._timer = self._loop.call_later(self._remaining_s(request), self._check_timeout)

    def _remaining_s(self, request: PendingRequest) -> float:
        """Return the remaining time for the next response."""
        passed_ns = time.perf_counter_ns() - self._waiting_since_ns
        return self.timeout_s + request.patience_s - passed_ns / 1e9

    def _check_timeout(self) -> None:
        """Fail if the next response is late; one timer serves all requests."""
        self._timer = None
        if not self._queue:
            return
        request = self._queue[0]
        if self._remaining_s(request) > 0:
            self._set_timer(request)
            return
        allowed_s = self.timeout_s + request.patience_s
        self._fail(f"did not respond to {request} in {allowed_s:g} s", "allow more time")
