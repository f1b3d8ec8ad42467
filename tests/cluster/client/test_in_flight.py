"""Responses arrive in the order of requests; wrong and late ones are reported."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

from cluster.client.broker_connection import BrokerConnection
from cluster.client.in_flight import InFlightRequests, Liveness
from cluster.client.pending_request import PendingRequest
from tests.replay.support.produce_messages import PRODUCE
from tests.replay.support.timers import Timers


class RecordingRequest(PendingRequest):
    """Records its responses; `receive_many` takes one for each byte equal to its name."""

    __slots__ = ("name", "taken")

    def __init__(self, name: bytes = b"a", correlation_id: int = 1, patience_s: float = 0) -> None:
        super().__init__(cast(BrokerConnection, None), PRODUCE, 9, patience_s)
        self.name = name
        self.correlation_id = correlation_id
        self.taken: list[bytes] = []

    def receive_many(self, data: bytes | bytearray, start: int, now_ns: int) -> tuple[int, int]:
        end = start
        while data[end : end + 1] == self.name:
            end += 1
        return end - start, end

    def receive(self, frame: bytes) -> None:
        self.taken.append(frame)


def with_waiting(
    do: Callable[[InFlightRequests, list[str]], Awaitable[None]], timeout_s: float = 9
) -> None:
    async def main() -> None:
        failures: list[str] = []
        waiting = InFlightRequests(
            timeout_s, lambda what, advice: failures.append(what), Liveness()
        )
        await do(waiting, failures)
        waiting.drain()

    asyncio.run(main())


def test_batches_of_responses_go_to_their_requests() -> None:
    async def do(waiting: InFlightRequests, failures: list[str]) -> None:
        waiting.add(RecordingRequest(b"a"), 3)
        waiting.add(RecordingRequest(b"b"), 2)
        assert waiting.receive_many(b"-aa", 1) == 3
        assert len(waiting) == 3
        assert waiting.receive_many(b"abx", 0) == 2
        assert len(waiting) == 1
        assert waiting.receive_many(b"x", 0) == 0
        assert waiting.receive_many(b"b", 0) == 1
        assert waiting.receive_many(b"b", 0) == 0
        assert not failures

    with_waiting(do)


def test_a_response_out_of_order_is_a_failure() -> None:
    async def do(waiting: InFlightRequests, failures: list[str]) -> None:
        first, second = RecordingRequest(correlation_id=1), RecordingRequest(correlation_id=2)
        waiting.add(first)
        waiting.add(second)
        assert waiting.first is first
        waiting.receive(b"\0\0\0\1one")
        assert (first.taken, second.taken) == ([b"\0\0\0\1one"], [])
        waiting.receive(b"\0\0\0\1two")
        assert failures == ["sent a response with correlation id 1 instead of 2 (Produce v9)"]
        assert waiting.drain() == [second]
        waiting.receive(b"\0\0\0\2two")
        assert failures[1:] == ["sent a response without a request (correlation id 2)"]

    with_waiting(do)


def test_requests_with_a_wait_time_have_a_longer_timeout() -> None:
    async def do(waiting: InFlightRequests, failures: list[str]) -> None:
        timers = Timers()
        waiting.add(RecordingRequest(patience_s=3600))
        timers.run_newest()
        assert not failures
        waiting.receive(b"\0\0\0\1")
        waiting.add(RecordingRequest())
        timers.run_newest()
        assert failures == ["did not respond to Produce v9 in 0 s"]

    with_waiting(do, timeout_s=0)


def test_the_timer_follows_the_shortest_timeout() -> None:
    async def do(waiting: InFlightRequests, failures: list[str]) -> None:
        timers = Timers()
        waiting.add(RecordingRequest(patience_s=50))
        assert 50 < timers.due_s()[-1] <= 59
        waiting.add(RecordingRequest(correlation_id=2))
        assert 50 < timers.due_s()[-1] <= 59
        waiting.receive(b"\0\0\0\1")
        assert timers.due_s()[-1] <= 9
        waiting.receive(b"\0\0\0\2")
        waiting.add(RecordingRequest(patience_s=50))
        assert timers.due_s()[-1] <= 9  # and is then set again
        timers.run_newest()
        assert 50 < timers.due_s()[-1] <= 59
        assert not failures

    with_waiting(do)
