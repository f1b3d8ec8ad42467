"""Replays one captured connection: sends its steps when due, and handles the responses."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from construct import Container

from dissector.errors import DissectorError, ReplayError
from dissector.protocol.apis import api
from dissector.protocol.headers import API_VERSIONS, PRODUCE
from dissector.protocol.messages import Message
from replay.client.fan_in import merge
from replay.mapping.learner import learn, learn_unconfirmed
from replay.model.outcome import Outcome, RequestPart, Verdict
from replay.model.refusal import RewriteError
from replay.run.concurrency_limit import UnderWay
from replay.run.dispatcher import Asking, Sent
from replay.run.pass_context import AHEAD, AHEAD_NS, Stage
from replay.run.template_player import Tracer
from replay.sessions.live_fetch_sessions import Use
from replay.sessions.missing_on_target import REMEMBERED
from replay.sessions.retry_policy import (
    FIRST_PAUSE_S,
    LONGEST_PAUSE_S,
    SOON_S,
    Again,
    is_in_vain,
    why_again,
)
from replay.sessions.visibility import take_effect

STOPPED = "the replay ended before it was answered"


class Player:
    """Replays one captured connection."""

    def __init__(self, stage: Stage, numbers: Sequence[int], home: int, end: int = 0) -> None:
        """
        Prepare the replay of a connection.

        Args:
            stage: The pass context that all players share.
            numbers: The numbers of its steps.
            home: The target's broker in place of the captured one.
            end: The first step, of any connection, captured after this connection had ended.
        """
        self._stage = stage
        self._numbers = numbers
        self._end = end
        self._asking = Asking(stage, home)
        self._tracer = Tracer(stage, self._asking, self._hand_over, numbers)
        self._is_over = False
        self._sent: asyncio.Queue[Sent | None] = asyncio.Queue()
        self._unsettled: UnderWay[Sent] = UnderWay()
        self._first_writes: dict[tuple[Any, int], int] = {}
        self._hopeless: set[tuple[int, Again]] = set()
        self._loop = asyncio.get_running_loop()

    async def play(self) -> None:
        """Send all steps; return when all sent ones have their outcomes, also if cancelled."""
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self._receive())
                await self._connect_ahead()
                at = 0
                while (at := await self._tracer.play(at)) < len(self._numbers):
                    at += await self._send(at)
                await self._tracer.under_way.until(0)
                self._sent.put_nowait(None)
            await self._outlast()
        finally:
            self._is_over = True
            self._asking.close()
            for sent in self._unsettled:
                _stop(sent)
                self._settle(sent)

    async def _outlast(self) -> None:
        """
        Keep the connections open as long as the captured one was.

        When a broker loses a connection it closes the share session begun on it (KIP-932), which
        requests on other connections may still use.
        """
        if self._numbers:
            await self._stage.all_answered(self._numbers[-1] + 1, self._end)

    def _settle(self, sent: Sent) -> Verdict:
        """Hand over an outcome for comparison."""
        self._unsettled.end(sent.step.number)
        if sent.step.captured.api_key == PRODUCE and not _is_placed(sent):
            self._be_unsure(sent.taken + sent.outcome.parts)
        self._stage.progress.done += 1
        return self._stage.judge.outcome(sent.outcome, self._stage.world)

    async def _send(self, at: int) -> int:
        """Send the next step, and those that can be sent with it; return their number."""
        stage, number = self._stage, self._numbers[at]
        if stage.plan.is_sent(number):
            await self._wait(number)
            traced = self._tracer.send(at)
            if traced:
                return traced
        await self._unsettled.until(AHEAD)
        step = stage.plan.step(number)
        sent = Sent(step, Outcome(step, stage.copy, version=step.captured.api_version))
        if step.left_out:
            sent.outcome.failure = step.left_out
        else:
            sent.outcome.lag_ns = stage.progress.lag_ns = stage.lag_ns(number)
            sent.message = step.captured.request_message()
            if await self._let_settle(number, sent.message):
                traced = self._tracer.send(at)
                if traced:
                    return traced
            await self._ask(sent)
        stage.progress.sent += 1
        self._hand_over(sent)
        return 1

    async def _ask(self, sent: Sent) -> None:
        self._asking.sign(sent.step)
        try:
            await self._stage.groups.until_joined(sent.step)
            await self._asking.ask(sent)
        except (DissectorError, RewriteError) as error:
            _fail(sent.outcome, error)

    def _hand_over(self, sent: Sent) -> None:
        """Queue a step whose response is to be received."""
        self._unsettled.begin(sent.step.number, sent)
        self._sent.put_nowait(sent)

    async def _wait(self, number: int) -> None:
        """Wait until a step may be sent and is due."""
        stage = self._stage
        connection, begun_ns = stage.plan.asked_at(number)
        stage.heartbeats.awaits(connection, begun_ns)
        await stage.answered(stage.plan.after(number))
        await stage.due(number)
        if self._asking.quiet_until:
            await self._be_quiet()
        await self._tracer.under_way.until(AHEAD)
        stage.heartbeats.reaches(begun_ns)

    async def _let_settle(self, number: int, message: Message) -> bool:
        """
        Wait for the first response about each partition that is written to.

        Before it, a leader may be unknown, or not know the partition, and the request be retried:
        requests pipelined behind it would overtake it.

        Returns:
            Whether there were such responses to wait for.
        """
        if message.api_key != PRODUCE or message.body is None:
            return False
        first = set()
        for topic in message.body.topic_data:
            title = topic.get("name") or topic.get("topic_id")
            for partition in topic.partition_data:
                first.add(self._first_writes.setdefault((title, partition.index), number))
        first.discard(number)
        await self._stage.answered(first)
        return bool(first)

    async def _connect_ahead(self) -> None:
        """Connect before the first step is due, so that connecting does not delay it."""
        plan = self._stage.plan
        first = next(filter(plan.is_sent, self._numbers), None)
        if first is None or not self._stage.manner.pace.is_timed:
            return
        await self._stage.due(first, AHEAD_NS)
        self._asking.sign(plan.step(first))
        with suppress(ReplayError):  # the first request that needs the connection reports the error
            await self._asking.link(self._asking.home)

    async def _be_quiet(self) -> None:
        """Pause for the throttle time that the target asked for."""
        while (wait_s := self._asking.quiet_until - self._loop.time()) > 0:
            await asyncio.sleep(wait_s)
        self._asking.quiet_until = 0.0

    async def _receive(self) -> None:
        while (sent := await self._sent.get()) is not None:
            try:
                if sent.asked:
                    await self._finish(sent)
            except (DissectorError, RewriteError) as error:
                _fail(sent.outcome, error)
            finally:
                self._stage.done(sent.step.number)
            self._tracer.learn(sent, self._settle(sent))

    async def _finish(self, sent: Sent) -> None:
        """Receive the response, retry the request if necessary, and learn from the response."""
        captured = sent.step.captured.response_message()
        key, outcome = sent.step.captured.api_key, sent.outcome
        soon = self._loop.time() + SOON_S
        deadline = soon - SOON_S + self._stage.manner.timeout_s
        pause_s = FIRST_PAUSE_S
        answer = await self._answer(sent)
        while answer is not None:
            self._note(sent, captured, answer)
            why = why_again(key, captured, answer, outcome.version, self._stage.world)
            why = why or self._stage.groups.why_again(sent.step, answer, outcome.version)
            if (
                why is None
                or (key, why) in self._hopeless
                or is_in_vain(why, sent.step.missing_prerequisites)
            ):
                break
            exchange = outcome.parts[0].request, captured, answer, outcome.version
            if self._stage.absent.knows(why, *exchange):
                break
            if why is Again.SOME_RECORDS and not self._stage.caught_up(sent.step):
                soon = self._loop.time() + SOON_S
            latest = min(soon, deadline) if why is Again.SOME_RECORDS else deadline
            if self._loop.time() + pause_s > latest:
                if why not in REMEMBERED:
                    self._hopeless.add((key, why))
                await self._stage.absent.give_up(why, *exchange)
                break
            self._stage.progress.waits[sent.step.number] = f"{sent.step.captured.api}: {why.value}"
            if why is Again.REST:
                asked = [part.request.group_ids for part in outcome.parts]
                self._stage.heartbeats.urge({each for groups in asked for each in groups})
            if why is not Again.MEMBER_ID:
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            answer = await self._ask_again(sent, why, answer)
        self._stage.progress.waits.pop(sent.step.number, None)
        outcome.response = answer
        outcome.parts, sent.taken = sent.taken + outcome.parts, []
        outcome.changes += self._stage.groups.rejoined(sent.step)
        if answer is not None:
            if why is None:
                self._hopeless = {each for each in self._hopeless if each[0] != key}
            asked = outcome.parts[0].request
            self._stage.absent.answered(asked, captured, answer, outcome.version)
            self._learn(sent, captured, answer)
            about = sent.step.captured.api, outcome.parts[0].request, answer
            await take_effect(*about, self._stage.cluster)

    async def _ask_again(self, sent: Sent, why: Again, answer: Container) -> Container | None:
        """Retry a request, after a rejoin if a member needs one, and return the response."""
        groups = self._stage.groups
        rejoined = None
        if why is Again.REJOIN:
            rejoined = await groups.rejoin(sent.step, sent.outcome.parts[0].request)
        await self._asking.ask_again(sent, why, answer)
        if sent.step.captured.api_key == PRODUCE:
            self._be_unsure(sent.outcome.parts)  # an error may come after the records are written
        if rejoined is not None:
            sent.outcome.changes.append(rejoined)
        return await self._answer(sent)

    def _be_unsure(self, parts: Iterable[RequestPart]) -> None:
        for part in parts:
            learn_unconfirmed(part.request, part.version, self._stage.world)

    async def _repeat(self, number: int, member: str) -> Container | None:
        """Repeat a step for a member, given by its captured id; learn from the response."""
        if self._is_over:
            return None  # the client is gone
        step = self._stage.plan.step(number)
        sent = Sent(step, Outcome(step, self._stage.copy), step.captured.request_message())
        assert sent.message is not None
        assert sent.message.body is not None
        sent.message.body.member_id = member
        await self._asking.ask(sent)
        answer, captured = await self._answer(sent), step.captured.response_message()
        if answer is not None:
            self._note(sent, captured, answer)
            self._learn(sent, captured, answer)
        return answer

    def _learn(self, sent: Sent, captured: Message | None, answer: Container) -> None:
        stage, outcome = self._stage, sent.outcome
        found = api(sent.step.captured.api_key)
        assert found is not None
        asked = merge(found.request, outcome.version, [part.request for part in outcome.parts])
        learn(sent.step, asked, captured, answer, outcome.version, stage.world)
        stage.groups.answered(sent.step, answer, self._repeat)

    async def _answer(self, sent: Sent) -> Container | None:
        """Receive the responses to all parts and return them merged; None if none is due."""
        outcome = sent.outcome
        for part, asked in zip(outcome.parts, sent.asked, strict=True):
            part.response = await asked.response()
        parts = sent.taken + outcome.parts
        bodies = [part.response for part in parts if part.response is not None]
        if not bodies:
            return None
        ends = [asked.response_ns for asked in sent.asked]
        outcome.latency_ns = max(ends) - min(asked.sent_ns for asked in sent.asked)
        found = api(sent.step.captured.api_key)
        assert found is not None
        return bodies[0] if len(bodies) == 1 else merge(found.response, outcome.version, bodies)

    def _note(self, sent: Sent, captured: Message | None, answer: Container) -> None:
        """Note session, membership and throttle data of a response, final or to be retried."""
        parts = [(part.node, part.request) for part in sent.outcome.parts]
        for part in sent.outcome.parts:
            if part.response is not None:
                api_name = sent.step.captured.api
                self._stage.shares.finish(part.node, part.request, part.response)
                self._stage.transactions.answered(api_name, part.request, part.response)
                self._stage.heartbeats.answered(sent.step, captured, part.request, part.response)
        if sent.use is not None:
            self._stage.sessions.finish(sent.use, parts, answer)
            if sent.use.is_new and sent.use.session is not None and sent.use.session.node >= 0:
                sent.use = Use(sent.use.session)
        throttle_ms = answer.get("throttle_time_ms") or 0
        # librdkafka's mock cluster omits a field of ApiVersions, which makes this field garbage.
        is_told = sent.step.captured.api_key != API_VERSIONS
        if throttle_ms and is_told and self._stage.manner.honours_throttle:
            quiet_s = min(throttle_ms / 1000, self._stage.manner.timeout_s)
            self._asking.quiet_until = self._loop.time() + quiet_s


def _is_placed(sent: Sent) -> bool:
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


def _stop(sent: Sent) -> None:
    """Record that the replay stopped waiting for a response that was still due."""
    outcome, is_due = sent.outcome, sent.step.captured.expects_response
    if sent.asked and is_due and outcome.response is None and not outcome.failure:
        outcome.failure, outcome.is_refused = STOPPED, True


def _fail(outcome: Outcome, error: Exception) -> None:
    """Record why a step was not sent or has no response."""
    outcome.failure = str(error)
    outcome.is_refused = not isinstance(error, ReplayError)
