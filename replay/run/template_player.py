"""
Fast path of a player: sends steps by request templates, once a step of their shape was replayed.

A step costs a tenth of its cost on the slow path (`Player`). Steps without a template, and
responses that differ from the captured ones, are left to the slow path.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import numpy as np

from cluster.client.broker_connection import BrokerConnection
from cluster.client.pending_request import PendingRequest, next_id
from dissector.errors import ReplayError
from dissector.kernel.named_rows import rows_of
from dissector.protocol.headers import FETCH, PRODUCE
from replay.mapping.request_rewriter import rewrite
from replay.model.outcome import Outcome, RequestPart, Verdict
from replay.plan.plain_fetches import PLAIN_FETCH
from replay.run.concurrency_limit import InFlight
from replay.run.dispatcher import Dispatcher, StepInFlight
from replay.run.fetch_player import FetchPlayer
from replay.run.pass_context import MAX_IN_FLIGHT, PassContext
from replay.sessions.retry_policy import FutileRetries
from replay.templates.batched_report import ON_SLOW_PATH
from replay.templates.request_writer import RequestRows
from replay.templates.step_arrays import Int32s
from replay.templates.template import RequestTemplate, replaced_roles, template_of
from replay.templates.template_arrays import WrittenRequest


class TemplateBatch(PendingRequest):
    """
    A batch of requests of one template, sent together; responses arrive one by one.

    Attributes:
        template: The template.
        rows: The requests; `ON_SLOW_PATH` replaces the latency of those left to the slow path.
        fast_count: Number of requests not left to the slow path.
    """

    __slots__ = ("_at", "_player", "fast_count", "rows", "template")

    def __init__(
        self,
        player: TemplatePlayer,
        connection: BrokerConnection,
        template: RequestTemplate,
        rows: RequestRows,
    ) -> None:
        super().__init__(connection.peer, PRODUCE, template.version, template.patience_s)
        self._player = player
        self._at = 0
        self.fast_count = len(rows)
        self.template = template
        self.rows = rows

    def receive_many(self, data: bytes | bytearray, start: int, now_ns: int) -> tuple[int, int]:
        """Match responses for as long as they equal the captured ones."""
        at, rows, player = self._at, self.rows, self._player
        latency_ns = now_ns - self.sent_ns
        arguments = self.correlation_id, rows, at, latency_ns
        count, end = self.template.matcher.match(player.arrays, data, start, *arguments)
        if count:
            self._advance(count)
            player.notify_done(rows.steps[at : at + count].tolist())
        return count, end

    def receive(self, frame: bytes) -> None:
        """Pass a response that differs to the slow path."""
        self._fall_back().receive(frame)

    def fail(self, failure: ReplayError) -> None:
        """Report the failure by the slow path, for the first request without a response."""
        self._fall_back().fail(failure)

    def _fall_back(self) -> PendingRequest:
        """Leave the first request without a response to the slow path."""
        request, row = self.split_one(), rows_of(self.rows.requests, WrittenRequest)[self._at]
        self._player.fall_back(self, row.step, row.lag_ns, request)
        row.latency_ns = ON_SLOW_PATH
        self.fast_count -= 1
        self._advance(1)
        return request

    def _advance(self, count: int) -> None:
        """Assign the next response to the next request, if any."""
        self._at += count
        self.correlation_id = next_id(self.correlation_id, count)
        if self._at == len(self.rows):
            self._player.complete(self)


class TemplatePlayer:
    """
    The request templates of one captured connection, and the batches in flight.

    Args:
        context: The pass context.
        dispatcher: The dispatcher with the connections to the target.
        hand_over: Receives a sent step that the slow path is to finish.
        futile_retries: Retries that a response as captured shows to be worth while again.
        numbers: The numbers of the connection's steps.

    Attributes:
        in_flight: The batches and Fetches in flight.
        arrays: The arrays of all steps.
        notify_done: Called with the steps that have their responses.
    """

    def __init__(
        self,
        context: PassContext,
        dispatcher: Dispatcher,
        hand_over: Callable[[StepInFlight], None],
        futile_retries: FutileRetries,
        numbers: Sequence[int],
    ) -> None:
        self._context = context
        self._plan = context.plan
        self._shape_of = context.plan.shape_of
        self._dispatcher = dispatcher
        self._hand_over = hand_over
        self._numbers = numbers
        self._steps: Int32s = np.array(numbers, np.int32)
        self._templates = context.templates
        self._next = 0
        self._is_playing = False
        self._ended: asyncio.Future[None] | None = None
        self._times_ns = context.plan.request_times_ns
        self._connection = context.plan.request_at(numbers[0])[0] if numbers else 0
        self.arrays = context.arrays
        self.notify_done = context.notify_done
        self.in_flight: InFlight[PendingRequest] = InFlight()
        self._fetches = FetchPlayer(context, dispatcher, self.in_flight, hand_over, futile_retries)

    def learn_template(self, sent: StepInFlight, verdict: Verdict) -> None:
        """Make a template of a step that the slow path has replayed, if it is suitable."""
        shape = self._shape_of[sent.step.number]
        if sent.step.captured.api_key == FETCH and verdict is Verdict.SAME:
            self._context.batched_reporter.learn("Fetch", sent.outcome.changes)
        if shape < 0 or verdict is not Verdict.SAME or len(sent.requests) != 1:
            return
        current, revision = self._templates.get(shape), self._context.cluster.revision
        if (
            current is not None
            and current.cluster_revision == revision
            and current.replaced >= replaced_roles(sent.outcome)
        ):
            return
        frame, connection = (
            sent.requests[0].frame,
            self._dispatcher.open_connection(sent.outcome.parts[0].node),
        )
        if frame is None or connection is None:
            return
        template = template_of(
            shape,
            self._plan.shapes[shape],
            sent.outcome,
            connection.header(PRODUCE, sent.outcome.version),
            frame.result(),
            revision,
            self._context.ids,
        )
        may_lack = template is not None and template.transactional_id and self._plan.is_partial
        if template is not None and not may_lack:
            self._templates[shape] = template

    async def play(self, first: int) -> int:
        """
        Send steps while templates exist; wait for dependencies if necessary.

        Args:
            first: Index of the first of the connection's steps to be sent.

        Returns:
            The index of the first step that is left to the slow path.
        """
        self._next, self._is_playing, self._ended = first, True, None
        try:
            self._send_ready()
            if self._is_playing:
                self._ended = asyncio.get_running_loop().create_future()
                await self._ended
        finally:
            self._is_playing = False
        return self._next

    def _send_ready(self) -> None:
        """Send the ready steps; continue after the response of a missing dependency."""
        context, numbers = self._context, self._numbers
        while self._is_playing and self._next < len(numbers):
            number = numbers[self._next]
            must_wait = self._dispatcher.throttled_until or len(self.in_flight) > MAX_IN_FLIGHT
            shape = self._shape_of[number]
            if must_wait or (shape != PLAIN_FETCH and shape not in self._templates):
                break
            awaited = context.pending_dependency(number)
            if awaited >= 0:
                context.heartbeats.expect_request(self._connection, self._times_ns[number])
                context.when_done(awaited, self._send_ready)
                return
            count = self.send(self._next)
            if not count:
                break
            context.heartbeats.advance_to(self._times_ns[number])
            self._next += count
        self._is_playing = False
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(None)

    def send(self, first: int) -> int:
        """
        Send the steps that are ready and have the same template; return their number.

        Args:
            first: Index of the first of the connection's steps to be sent.
        """
        context, number = self._context, self._numbers[first]
        if self._shape_of[number] == PLAIN_FETCH:
            return int(self._fetches.send(number))
        template = self._templates.get(self._shape_of[number])
        if template is None or template.cluster_revision != context.cluster.revision:
            return 0
        connection = self._dispatcher.open_connection(template.node)
        if connection is None or not connection.can_send:
            return 0
        written = template.writer.write(
            self.arrays,
            self._steps,
            first,
            connection.next_id,
            context.now_ns,
            context.ids.producers,
        )
        if written is None:
            return 0
        rows, data = written
        batch = TemplateBatch(self, connection, template, rows)
        self._begin(batch)
        connection.send_batch(batch, len(rows), data)
        return len(rows)

    def _begin(self, batch: TemplateBatch) -> None:
        context, rows, title = self._context, batch.rows, batch.template.transactional_id
        if title:
            context.transactions.begin(title)
            context.written.endings.begin(title)
        context.progress.lag_ns = int(rows.requests["lag_ns"][-1])
        context.progress.sent += len(rows)
        self.in_flight.begin(id(batch), batch)

    def fall_back(
        self, batch: TemplateBatch, number: int, lag_ns: int, request: PendingRequest
    ) -> None:
        """Leave a step to the slow path, which waits for the response of the given request."""
        context, template = self._context, batch.template
        step, version = self._plan.step(number), template.version
        outcome = Outcome(step, context.pass_number, version=version, lag_ns=lag_ns)
        rewritten = rewrite(step.captured.request_message(), version, context.ids)
        outcome.changes = rewritten.changes
        outcome.parts = [RequestPart(template.node, version, rewritten.body)]
        self._hand_over(StepInFlight(step, outcome, requests=[request]))

    def complete(self, batch: TemplateBatch) -> None:
        """Report a batch when all requests have responses or are left to the slow path."""
        self.in_flight.end(id(batch))
        self._context.progress.done += batch.fast_count
        self._context.batched_reporter.add(batch.rows, batch.fast_count, batch.template)
