"""Replays one captured connection: sends its steps when due, and handles the responses."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from construct import Container

from cluster.client.absence import TargetStopped
from cluster.client.allowed_hosts import HostRefused
from cluster.client.fan_in import merge
from cluster.fields.refusal import RewriteError, UnsupportedByTarget
from dissector.errors import DissectorError, ReplayError
from dissector.protocol.apis import api
from dissector.protocol.headers import API_VERSIONS, PRODUCE
from dissector.protocol.messages import Message
from replay.final.log_bounds import Exchange
from replay.mapping.learner import learn, learn_unconfirmed
from replay.model.outcome import Outcome, RequestPart, Verdict
from replay.run.concurrency_limit import InFlight
from replay.run.dispatcher import Dispatcher, StepInFlight
from replay.run.ended_topics import end_topics
from replay.run.pass_context import CONNECT_AHEAD_NS, MAX_IN_FLIGHT, PassContext
from replay.run.template_player import TemplatePlayer
from replay.sessions.live_fetch_sessions import SessionUse
from replay.sessions.missing_on_target import REMEMBERED_REASONS
from replay.sessions.retry_policy import (
    FIRST_PAUSE_S,
    LONGEST_PAUSE_S,
    RECORDS_PATIENCE_S,
    FutileRetries,
    RetryReason,
    is_in_vain,
    retry_reason,
)
from replay.sessions.transaction_timeouts import until_timed_out
from replay.sessions.visibility import wait_until_visible

STOPPED = "the replay ended before it was answered"


class Player:
    """Replays one captured connection."""

    def __init__(
        self, context: PassContext, numbers: Sequence[int], default_node: int, end: int = 0
    ) -> None:
        """
        Prepare the replay of a connection.

        Args:
            context: The pass context that all players share.
            numbers: The numbers of its steps.
            default_node: The target's broker in place of the captured one.
            end: The first step, of any connection, captured after this connection had ended.
        """
        self._context = context
        self._numbers = numbers
        self._end = end
        self._dispatcher = Dispatcher(context, default_node)
        self._futile_retries: FutileRetries = set()
        arguments = self._enqueue, self._futile_retries, numbers
        self._template_player = TemplatePlayer(context, self._dispatcher, *arguments)
        self._is_over = False
        self._queue: asyncio.Queue[StepInFlight | None] = asyncio.Queue()
        self._in_flight: InFlight[StepInFlight] = InFlight()
        self._first_writes: dict[tuple[Any, int], int] = {}
        self._loop = asyncio.get_running_loop()

    async def play(self) -> None:
        """Send all steps; return when all sent ones have their outcomes, also if cancelled."""
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self._receive())
                await self._connect_ahead()
                at = 0
                while (at := await self._template_player.play(at)) < len(self._numbers):
                    at += await self._send(at)
                await self._template_player.in_flight.until_at_most(0)
                self._queue.put_nowait(None)
            await self._stay_connected()
        finally:
            self._is_over = True
            self._dispatcher.close()
            for sent in self._in_flight:
                _mark_stopped(sent)
                self._complete(sent)

    async def _stay_connected(self) -> None:
        """
        Keep the connections open as long as the captured one was.

        When a broker loses a connection it closes the share session begun on it (KIP-932), which
        requests on other connections may still use.
        """
        if self._numbers:
            await self._context.wait_for_all(self._numbers[-1] + 1, self._end)

    def _complete(self, sent: StepInFlight) -> Verdict:
        """Pass on an outcome for comparison."""
        self._in_flight.end(sent.step.number)
        if sent.step.captured.api_key == PRODUCE and not _has_offsets(sent):
            self._learn_unconfirmed(sent, sent.accepted_parts + sent.outcome.parts)
        self._context.progress.done += 1
        return self._context.outcomes.record(sent.outcome, self._context.ids)

    async def _send(self, at: int) -> int:
        """Send the next step, and others that can be sent with it; return their number."""
        context, number = self._context, self._numbers[at]
        if context.plan.is_sent(number):
            await self._wait_until_ready(number)
            batch = self._template_player.send(at)
            if batch:
                return batch
        await self._in_flight.until_at_most(MAX_IN_FLIGHT)
        await end_topics(context, number)
        step = context.plan.step(number)
        sent = StepInFlight(
            step, Outcome(step, context.pass_number, version=step.captured.api_version)
        )
        if step.left_out:
            sent.outcome.failure = step.left_out
        else:
            sent.outcome.lag_ns = context.progress.lag_ns = context.lag_ns(number)
            sent.message = step.captured.request_message()
            if await self._wait_for_first_writes(number, sent.message):
                batch = self._template_player.send(at)
                if batch:
                    return batch
            await self._dispatch(sent)
        context.progress.sent += 1
        self._enqueue(sent)
        return 1

    async def _dispatch(self, sent: StepInFlight) -> None:
        self._dispatcher.use_client_id_of(sent.step)
        state = self._context.ids, self._context.transactions, self._context.cluster
        try:
            await self._context.groups.until_joined(sent.step)
            assert sent.message is not None
            sent.outcome.is_untimely = not await until_timed_out(sent.step, sent.message, *state)
            await self._dispatcher.send(sent)
        except (DissectorError, RewriteError) as error:
            _mark_failed(sent, error)

    def _enqueue(self, sent: StepInFlight) -> None:
        """Queue a step until its response arrives."""
        self._in_flight.begin(sent.step.number, sent)
        self._queue.put_nowait(sent)

    async def _wait_until_ready(self, number: int) -> None:
        """Wait until a step may be sent and is due."""
        context = self._context
        connection, begun_ns = context.plan.request_at(number)
        context.heartbeats.expect_request(connection, begun_ns)
        await context.wait_for(context.plan.after(number))
        await context.wait_until_due(number)
        if self._dispatcher.throttled_until:
            await self._wait_out_throttle()
        await self._template_player.in_flight.until_at_most(MAX_IN_FLIGHT)
        context.heartbeats.advance_to(begun_ns)

    async def _wait_for_first_writes(self, number: int, message: Message) -> bool:
        """
        Wait for the first response about each partition that is written to.

        Before it, a leader may be unknown, or not know the partition, and the request be retried:
        requests pipelined behind it would overtake it.

        Returns:
            Whether any such response was awaited.
        """
        if message.api_key != PRODUCE or message.body is None:
            return False
        first = set()
        for topic in message.body.topic_data:
            title = topic.get("name") or topic.get("topic_id")
            for partition in topic.partition_data:
                first.add(self._first_writes.setdefault((title, partition.index), number))
        first.discard(number)
        await self._context.wait_for(first)
        return bool(first)

    async def _connect_ahead(self) -> None:
        """Connect before the first step is due, so that connecting does not delay it."""
        plan = self._context.plan
        first = next(filter(plan.is_sent, self._numbers), None)
        if first is None or not self._context.options.pace.is_timed:
            return
        await self._context.wait_until_due(first, CONNECT_AHEAD_NS)
        self._dispatcher.use_client_id_of(plan.step(first))
        with suppress(ReplayError):  # the first request that needs the connection reports the error
            await self._dispatcher.connect(self._dispatcher.default_node)

    async def _wait_out_throttle(self) -> None:
        """Pause for the throttle time of the target."""
        while (wait_s := self._dispatcher.throttled_until - self._loop.time()) > 0:
            await asyncio.sleep(wait_s)
        self._dispatcher.throttled_until = 0.0

    async def _receive(self) -> None:
        while (sent := await self._queue.get()) is not None:
            try:
                if sent.requests:
                    await self._finish(sent)
                    if sent.step.number in self._context.plan.awaited_without_response:
                        with suppress(ReplayError):  # the next request reports it
                            await self._dispatcher.until_processed(sent)
            except (DissectorError, RewriteError) as error:
                _mark_failed(sent, error)
            finally:
                self._context.mark_done(sent.step.number)
            self._template_player.learn_template(sent, self._complete(sent))

    async def _finish(self, sent: StepInFlight) -> None:
        """Receive the response, retry the request if necessary, and learn from the response."""
        captured = sent.step.captured.response_message()
        key, outcome = sent.step.captured.api_key, sent.outcome
        soon = self._loop.time() + RECORDS_PATIENCE_S
        deadline = soon - RECORDS_PATIENCE_S + self._context.options.timeout_s
        pause_s = FIRST_PAUSE_S
        response = await self._receive_response(sent)
        while response is not None:
            self._record_response(sent, captured, response)
            why = retry_reason(key, captured, response, outcome.version, self._context.ids)
            why = why or self._context.groups.retry_reason(sent.step, response, outcome.version)
            if (
                why is None
                or self._context.acquisitions.are_given(why, sent.step.captured, captured)
                or (key, why) in self._futile_retries
                or is_in_vain(why, sent.step.missing_prerequisites)
            ):
                break
            exchange = outcome.parts[0].request, captured, response, outcome.version
            if self._context.missing_resources.is_futile(why, *exchange):
                break
            if why is RetryReason.SOME_RECORDS and not self._context.has_caught_up(sent.step):
                soon = self._loop.time() + RECORDS_PATIENCE_S
            latest = min(soon, deadline) if why is RetryReason.SOME_RECORDS else deadline
            if self._loop.time() + pause_s > latest:
                if why not in REMEMBERED_REASONS:
                    self._futile_retries.add((key, why))
                await self._context.missing_resources.record_missing(why, *exchange)
                break
            self._context.progress.waits[outcome.pass_number, outcome.step.number] = (
                f"{sent.step.captured.api}: {why.value}"
            )
            if why is RetryReason.STABLE_GROUP:
                group_ids = [part.request.group_ids for part in outcome.parts]
                self._context.heartbeats.send_now({each for groups in group_ids for each in groups})
            if why is not RetryReason.MEMBER_ID:
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            response = await self._retry(sent, why, response)
        self._context.progress.waits.pop((outcome.pass_number, outcome.step.number), None)
        outcome.response = response
        outcome.parts, sent.accepted_parts = sent.accepted_parts + outcome.parts, []
        outcome.changes += self._context.groups.rejoin_changes(sent.step)
        if response is not None:
            if why is None:
                self._futile_retries -= {each for each in self._futile_retries if each[0] == key}
            request = outcome.parts[0].request
            self._context.missing_resources.record_response(
                request, captured, response, outcome.version
            )
            self._learn(sent, captured, response)
            arguments = sent.step.captured.api, outcome.parts[0].request, response
            await wait_until_visible(*arguments, self._context.cluster)

    async def _retry(
        self, sent: StepInFlight, why: RetryReason, response: Container
    ) -> Container | None:
        """Retry a request, after a rejoin if a member needs one, and return the response."""
        groups = self._context.groups
        rejoined = None
        if why is RetryReason.REJOIN:
            rejoined = await groups.rejoin(sent.step, sent.outcome.parts[0].request)
        await self._dispatcher.retry(sent, why, response)
        sent.outcome.is_repeated = True
        if sent.step.captured.api_key == PRODUCE:
            # The error may follow a successful append.
            self._learn_unconfirmed(sent, sent.outcome.parts)
        if rejoined is not None:
            sent.outcome.changes.append(rejoined)
        return await self._receive_response(sent)

    def _learn_unconfirmed(self, sent: StepInFlight, parts: Iterable[RequestPart]) -> None:
        for part in parts:
            learn_unconfirmed(sent.step, part.request, part.version, self._context.ids)

    async def _repeat(self, number: int, member: str) -> Container | None:
        """Repeat a step for a member, given by its captured id; learn from the response."""
        if self._is_over:
            return None  # the client has disconnected
        step = self._context.plan.step(number)
        sent = StepInFlight(
            step, Outcome(step, self._context.pass_number), step.captured.request_message()
        )
        assert sent.message is not None
        assert sent.message.body is not None
        sent.message.body.member_id = member
        await self._dispatcher.send(sent)
        response, captured = await self._receive_response(sent), step.captured.response_message()
        if response is not None:
            self._record_response(sent, captured, response)
            self._learn(sent, captured, response)
        return response

    def _learn(self, sent: StepInFlight, captured: Message | None, response: Container) -> None:
        context, outcome = self._context, sent.outcome
        found = api(sent.step.captured.api_key)
        assert found is not None
        request = merge(found.request, outcome.version, [part.request for part in outcome.parts])
        learn(sent.step, request, captured, response, outcome.version, context.ids)
        context.groups.record_response(sent.step, response, self._repeat)

    async def _receive_response(self, sent: StepInFlight) -> Container | None:
        """Receive the responses to all parts and return them merged; None if none is due."""
        outcome = sent.outcome
        for part, request in zip(outcome.parts, sent.requests, strict=True):
            part.response = await request.response()
        parts = sent.accepted_parts + outcome.parts
        bodies = [part.response for part in parts if part.response is not None]
        if not bodies:
            return None
        ends = [request.response_ns for request in sent.requests]
        outcome.latency_ns = max(ends) - min(request.sent_ns for request in sent.requests)
        found = api(sent.step.captured.api_key)
        assert found is not None
        return bodies[0] if len(bodies) == 1 else merge(found.response, outcome.version, bodies)

    def _record_response(
        self, sent: StepInFlight, captured: Message | None, response: Container
    ) -> None:
        """Record session, membership and throttle data of a response, final or to be retried."""
        parts = [(part.node, part.request) for part in sent.outcome.parts]
        self._context.acquisitions.record_response(sent.step.captured, response)
        for part, request in zip(sent.outcome.parts, sent.requests, strict=True):
            if part.response is not None:
                api_name = sent.step.captured.api
                times = request.sent_ns, request.response_ns
                exchange = Exchange(
                    sent.step.number, part.node, *times, part.request, part.response
                )
                self._context.written.record_response(api_name, exchange)
                self._context.share_sessions.record_response(part.node, part.request, part.response)
                answered = api_name, part.request, part.response
                sent.outcome.is_untimely |= self._context.transactions.record_response(*answered)
                self._context.heartbeats.record_response(
                    sent.step, captured, part.request, part.response
                )
        if sent.session_use is not None:
            self._context.fetch_sessions.record_response(sent.session_use, parts, response)
            session = sent.session_use.session
            if sent.session_use.is_new and session is not None and session.node >= 0:
                sent.session_use = SessionUse(session)
        throttle_ms = response.get("throttle_time_ms") or 0
        # librdkafka's mock cluster omits a field of ApiVersions, which makes this field garbage.
        is_reliable = sent.step.captured.api_key != API_VERSIONS
        if throttle_ms > 0 and is_reliable:
            self._dispatcher.throttle(sent.step.captured.api, throttle_ms)


def _has_offsets(sent: StepInFlight) -> bool:
    """Return whether captured and live Produce response both have the offsets of the records."""
    captured, live = sent.step.captured.response_message(), sent.outcome.response
    if captured is None or captured.body is None or live is None:
        return False
    return all(
        each.base_offset >= 0
        for body in (captured.body, live)
        for topic in body.responses
        for each in topic.partition_responses
    )


def _mark_stopped(sent: StepInFlight) -> None:
    """Record that the replay stopped waiting for a response that was due."""
    outcome, is_due = sent.outcome, sent.step.captured.expects_response
    if sent.requests and is_due and outcome.response is None and not outcome.failure:
        outcome.failure, outcome.is_refused = STOPPED, True
        begun_ns = min(request.sent_ns for request in sent.requests)
        outcome.waited_ns = time.perf_counter_ns() - begun_ns


def _mark_failed(sent: StepInFlight, error: Exception) -> None:
    """Record the reason why a step was not sent, or has no response."""
    outcome = sent.outcome
    outcome.failure = str(error)
    outcome.is_unsupported = isinstance(error, UnsupportedByTarget)
    is_unsent = isinstance(error, HostRefused | TargetStopped)
    outcome.is_refused = is_unsent or not isinstance(error, ReplayError)
    if is_unsent:  # only what another broker accepted before was sent
        outcome.parts, sent.accepted_parts = sent.accepted_parts, []
