"""Requests that wait for their answers, which come in the order in which they were sent."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from replay.client.pending_request import Asked


@dataclass(slots=True)
class Pulse:
    """
    Signs of life on connections that share it.

    Attributes:
        last_ns: When an answer came last, by `time.perf_counter_ns`.
    """

    last_ns: int = 0


class Waiting:
    """
    The requests of a connection that have no answer yet.

    Args:
        timeout_s: How long an answer may take.
        fail: Is told what is wrong with the answers, or that they don't come, and what may help.
        pulse: Takes over when answers come.

    Attributes:
        timeout_s: See above; may be changed.
    """

    def __init__(self, timeout_s: float, fail: Callable[[str, str], None], pulse: Pulse) -> None:
        self.timeout_s = timeout_s
        self._fail = fail
        self._pulse = pulse
        self._loop = asyncio.get_running_loop()
        self._open: deque[Asked] = deque()
        self._since_ns = 0
        self._watch: asyncio.TimerHandle | None = None
        self._allowed_s = 0.0

    def __len__(self) -> int:
        return len(self._open)

    @property
    def first(self) -> Asked | None:
        """The request whose answer comes next; None without any."""
        return self._open[0] if self._open else None

    def begin(self, asked: Asked, count: int = 1) -> None:
        """Wait for an answer, or for so many if that stands for as many requests."""
        if not self._open:
            self._since_ns = time.perf_counter_ns()
            self._expect(asked)
        self._open.extend([asked] * count)

    def end(self) -> list[Asked]:
        """Wait no more; return what has no answer."""
        self.look_no_more()
        left = list(self._open)
        self._open.clear()
        return left

    def look_no_more(self) -> None:
        """Let answers be as late as they like."""
        if self._watch is not None:
            self._watch.cancel()

    def take_many(self, data: bytes | bytearray, start: int) -> int:
        """
        Have answers taken that can be taken many at a time.

        Args:
            data: What came.
            start: Where in it the first answer begins, with its size.

        Returns:
            Where they end.
        """
        waiting = self._open
        while waiting and start < len(data):
            asked = waiting[0]
            now_ns = time.perf_counter_ns()
            count, start = asked.take_many(data, start, now_ns)
            if not count:
                break
            self._since_ns = self._pulse.last_ns = now_ns
            for _ in range(count):
                waiting.popleft()
            self._expect_sooner(asked)
        return start

    def take(self, frame: bytes) -> None:
        """Have the request take an answer that waits for it."""
        waiting = self._open
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
        asked.answered_ns = self._since_ns = self._pulse.last_ns = time.perf_counter_ns()
        self._expect_sooner(asked)
        asked.take(frame)

    def _expect_sooner(self, answered: Asked) -> None:
        """See to it that somebody looks where less time is left than for what was answered."""
        if self._open and self._open[0].patience_s < answered.patience_s:
            self._expect(self._open[0])

    def _expect(self, asked: Asked) -> None:
        """See to it that somebody looks when the answer that comes next is late."""
        allowed_s = self.timeout_s + asked.patience_s
        if self._watch is not None:
            if allowed_s >= self._allowed_s:
                return  # somebody looks before
            self._watch.cancel()
        self._allowed_s = allowed_s
        self._watch = self._loop.call_later(self._left_s(asked), self._look)

    def _left_s(self, asked: Asked) -> float:
        """Return for how long the answer that comes next may still take."""
        passed_ns = time.perf_counter_ns() - self._since_ns
        return self.timeout_s + asked.patience_s - passed_ns / 1e9

    def _look(self) -> None:
        """See whether the answer that comes next is late; one timer serves all requests."""
        self._watch = None
        if not self._open:
            return
        first = self._open[0]
        if self._left_s(first) > 0:
            self._expect(first)
            return
        allowed_s = self.timeout_s + first.patience_s
        self._fail(f"did not answer {first} in {allowed_s:g} s", "allow more time")
