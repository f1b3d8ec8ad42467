"""Requests that wait for their answers, which come in the order in which they were sent."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from replay.client.pending_request import PendingRequest


@dataclass(slots=True)
class Liveness:
    """
    Signs of life on connections that share it.

    Attributes:
        last_response_ns: When an answer came last, by `time.perf_counter_ns`.
    """

    last_response_ns: int = 0


class InFlightRequests:
    """
    The requests of a connection that have no answer yet.

    Args:
        timeout_s: How long an answer may take.
        fail: Is told what is wrong with the answers, or that they don't come, and what may help.
        liveness: Takes over when answers come.

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
        """The request whose answer comes next; None without any."""
        return self._queue[0] if self._queue else None

    def add(self, request: PendingRequest, count: int = 1) -> None:
        """Wait for an answer, or for so many if that stands for as many requests."""
        if not self._queue:
            self._waiting_since_ns = time.perf_counter_ns()
            self._set_timer(request)
        self._queue.extend([request] * count)

    def drain(self) -> list[PendingRequest]:
        """Wait no more; return what has no answer."""
        self.stop_timer()
        left = list(self._queue)
        self._queue.clear()
        return left

    def stop_timer(self) -> None:
        """Let answers be as late as they like."""
        if self._timer is not None:
            self._timer.cancel()

    def receive_many(self, data: bytes | bytearray, start: int) -> int:
        """
        Have answers taken that can be taken many at a time.

        Args:
            data: What came.
            start: Where in it the first answer begins, with its size.

        Returns:
            Where they end.
        """
        waiting = self._queue
        while waiting and start < len(data):
            asked = waiting[0]
            now_ns = time.perf_counter_ns()
            count, start = asked.receive_many(data, start, now_ns)
            if not count:
                break
            self._waiting_since_ns = self._liveness.last_response_ns = now_ns
            for _ in range(count):
                waiting.popleft()
            self._shorten_timer(asked)
        return start

    def receive(self, frame: bytes) -> None:
        """Have the request take an answer that waits for it."""
        waiting = self._queue
        correlation_id = int.from_bytes(frame[:4], "big", signed=True)
        if not waiting:
            self._fail(f"answered what nobody asked (correlation id {correlation_id})", "")
            return
        asked = waiting[0]
        if correlation_id != asked.correlation_id:
            self._fail(
                f"answered correlation id {correlation_id} where {asked.correlation_id} ({asked}) "
                "was next",
                "",
            )
            return
        waiting.popleft()
        asked.response_ns = self._waiting_since_ns = self._liveness.last_response_ns = (
            time.perf_counter_ns()
        )
        self._shorten_timer(asked)
        asked.receive(frame)

    def _shorten_timer(self, response: PendingRequest) -> None:
        """See to it that somebody looks where less time is left than for what was answered."""
        if self._queue and self._queue[0].patience_s < response.patience_s:
            self._set_timer(self._queue[0])

    def _set_timer(self, request: PendingRequest) -> None:
        """See to it that somebody looks when the answer that comes next is late."""
        allowed_s = self.timeout_s + request.patience_s
        if self._timer is not None:
            if allowed_s >= self._timer_timeout_s:
                return  # somebody looks before
            self._timer.cancel()
        self._timer_timeout_s = allowed_s
        self._timer = self._loop.call_later(self._remaining_s(request), self._check_timeout)

    def _remaining_s(self, request: PendingRequest) -> float:
        """Return for how long the answer that comes next may still take."""
        passed_ns = time.perf_counter_ns() - self._waiting_since_ns
        return self.timeout_s + request.patience_s - passed_ns / 1e9

    def _check_timeout(self) -> None:
        """See whether the answer that comes next is late; one timer serves all requests."""
        self._timer = None
        if not self._queue:
            return
        first = self._queue[0]
        if self._remaining_s(first) > 0:
            self._set_timer(first)
            return
        allowed_s = self.timeout_s + first.patience_s
        self._fail(f"did not answer {first} in {allowed_s:g} s", "allow more time")
