"""
Plays steps of one captured connection by stencils, where their shape has been played before.

A step costs a tenth of what it costs the general way. That one has the last word: what a stencil
can't tell is left to it, and so is an answer that says anything else than the captured one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import numpy as np

from dissector.capture.columns import Int64s
from dissector.errors import ReplayError
from dissector.protocol.headers import PRODUCE
from replay.client.broker_connection import BrokerConnection
from replay.client.pending_request import PendingRequest, next_id
from replay.mapping.request_rewriter import rewrite
from replay.model.outcome import Outcome, RequestPart, Verdict
from replay.run.concurrency_limit import UnderWay
from replay.run.dispatcher import Asking, Sent
from replay.run.pass_context import AHEAD, Stage
from replay.templates.batched_report import GIVEN_UP
from replay.templates.request_kernel import LAG, LATENCY, STEP
from replay.templates.step_arrays import Int32s
from replay.templates.template import Stencil, replaced, stencil_of


class Traced(PendingRequest):
    """
    Requests that were sent together by one stencil, and are answered one after the other.

    Attributes:
        stencil: By which they were sent.
        told: What is known of each, as `stamp` tells it; where it was given up it took no time.
        alike: How many were not.
    """

    __slots__ = ("_at", "_tracer", "alike", "stencil", "told")

    def __init__(
        self, tracer: Tracer, link: BrokerConnection, stencil: Stencil, told: Int64s
    ) -> None:
        super().__init__(link.peer, PRODUCE, stencil.version, stencil.patience_s)
        self._tracer = tracer
        self._at = 0
        self.alike = len(told)
        self.stencil = stencil
        self.told = told

    def take_many(self, data: bytes | bytearray, start: int, now_ns: int) -> tuple[int, int]:
        """Take answers as long as there is nothing unusual about them."""
        at, told, tracer = self._at, self.told, self._tracer
        latency_ns = now_ns - self.sent_ns
        asked = self.correlation_id, told, at, latency_ns
        count, end = self.stencil.match.take(tracer.arrays, data, start, *asked)
        if count:
            self._go_on(count)
            tracer.done_all(told[at : at + count, STEP].tolist())
        return count, end

    def take(self, frame: bytes) -> None:
        """Have the general way take an answer about which something is unusual."""
        self._give_up().receive(frame)

    def lose(self, failure: ReplayError) -> None:
        """Have the general way tell that the first that has no answer gets none."""
        self._give_up().fail(failure)

    def _give_up(self) -> PendingRequest:
        """Have the general way wait for the answer to the first that has none."""
        asked, row = self.split_one(), self.told[self._at]
        self._tracer.give_up(self, int(row[STEP]), int(row[LAG]), asked)
        row[LATENCY] = GIVEN_UP
        self.alike -= 1
        self._go_on(1)
        return asked

    def _go_on(self, count: int) -> None:
        """Have the next answer be for the next request, if there is one."""
        self._at += count
        self.correlation_id = next_id(self.correlation_id, count)
        if self._at == len(self.told):
            self._tracer.take(self)


class Tracer:
    """
    The stencils of one captured connection, and what is in flight by them.

    Args:
        stage: What all players share.
        asking: Has the connections.
        hand_over: Takes a step that was sent, and that the general way is to finish.
        numbers: Of the steps of the connection.

    Attributes:
        under_way: What was sent and not answered yet.
        arrays: What is known of all steps.
        done_all: Is told of the steps that have their answers.
    """

    def __init__(
        self,
        stage: Stage,
        asking: Asking,
        hand_over: Callable[[Sent], None],
        numbers: Sequence[int],
    ) -> None:
        self._stage = stage
        self._plan = stage.plan
        self._shape_of = stage.plan.shape_of
        self._asking = asking
        self._hand_over = hand_over
        self._numbers = numbers
        self._steps: Int32s = np.array(numbers, np.int32)
        self._stencils: dict[int, Stencil] = {}
        self._next = 0
        self._is_playing = False
        self._ended: asyncio.Future[None] | None = None
        self._times_ns = stage.plan.request_times_ns
        self._connection = stage.plan.asked_at(numbers[0])[0] if numbers else 0
        self.arrays = stage.arrays
        self.done_all = stage.done_all
        self.under_way: UnderWay[Traced] = UnderWay()

    def learn(self, sent: Sent, verdict: Verdict) -> None:
        """Take a step that the general way has played for a model, if it is one."""
        shape = self._shape_of[sent.step.number]
        if shape < 0 or verdict is not Verdict.SAME or len(sent.asked) != 1:
            return
        known, age = self._stencils.get(shape), self._stage.cluster.revision
        if known is not None and known.age == age and known.replaced >= replaced(sent.outcome):
            return
        frame, link = sent.asked[0].frame, self._asking.there(sent.outcome.parts[0].node)
        if frame is None or link is None:
            return
        stencil = stencil_of(
            shape,
            self._plan.shapes[shape],
            sent.outcome,
            link.header(PRODUCE, sent.outcome.version),
            frame.result(),
            age,
            self._stage.world,
        )
        may_lack = stencil is not None and stencil.transactional_id and self._plan.is_partial
        if stencil is not None and not may_lack:
            self._stencils[shape] = stencil

    async def play(self, first: int) -> int:
        """
        Send steps as far as stencils serve, also those that must wait for answers.

        Args:
            first: Which of the connection's steps is the first to be sent.

        Returns:
            Which is the first that the general way must send, or wait for.
        """
        self._next, self._is_playing, self._ended = first, True, None
        try:
            self._send_on()
            if self._is_playing:
                self._ended = asyncio.get_running_loop().create_future()
                await self._ended
        finally:
            self._is_playing = False
        return self._next

    def _send_on(self) -> None:
        """Send what can be sent; where only an answer is missing, go on when it is there."""
        stage, numbers = self._stage, self._numbers
        while self._is_playing and self._next < len(numbers):
            number = numbers[self._next]
            is_held = self._asking.quiet_until or len(self.under_way) > AHEAD
            if is_held or self._shape_of[number] not in self._stencils:
                break
            awaited = stage.awaited(number)
            if awaited >= 0:
                stage.heartbeats.awaits(self._connection, self._times_ns[number])
                stage.when_done(awaited, self._send_on)
                return
            count = self.send(self._next)
            if not count:
                break
            stage.heartbeats.reaches(self._times_ns[number])
            self._next += count
        self._is_playing = False
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(None)

    def send(self, first: int) -> int:
        """
        Send steps that are ready, as far as one stencil serves; return how many.

        Args:
            first: Which of the connection's steps is the first to be sent.
        """
        stage = self._stage
        stencil = self._stencils.get(self._shape_of[self._numbers[first]])
        if stencil is None or stencil.age != stage.cluster.revision:
            return 0
        link = self._asking.there(stencil.node)
        if link is None or not link.can_send:
            return 0
        written = stencil.stamp.write(
            self.arrays, self._steps, first, link.next_id, stage.now_ns, stage.world.producers
        )
        if written is None:
            return 0
        told, data = written
        traced = Traced(self, link, stencil, told)
        self._begin(traced)
        link.send_batch(traced, len(told), data)
        return len(told)

    def _begin(self, traced: Traced) -> None:
        stage, told, title = self._stage, traced.told, traced.stencil.transactional_id
        if title:
            stage.transactions.open[title] = None
        stage.progress.lag_ns = int(told[-1, LAG])
        stage.progress.sent += len(told)
        self.under_way.begin(id(traced), traced)

    def give_up(self, traced: Traced, number: int, lag_ns: int, asked: PendingRequest) -> None:
        """Have the general way finish a step, for whose answer `request_message` waits."""
        stage, stencil = self._stage, traced.stencil
        step, version = self._plan.step(number), stencil.version
        outcome = Outcome(step, stage.copy, version=version, lag_ns=lag_ns)
        rewritten = rewrite(step.captured.request_message(), version, stage.world)
        outcome.changes = rewritten.changes
        outcome.parts = [RequestPart(stencil.node, version, rewritten.body)]
        self._hand_over(Sent(step, outcome, asked=[asked]))

    def take(self, traced: Traced) -> None:
        """Take requests that all have their answers, or are given up."""
        self.under_way.end(id(traced))
        self._stage.progress.done += traced.alike
        self._stage.unreported.add(traced.told, traced.alike, traced.stencil)
