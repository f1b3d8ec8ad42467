"""
Fast path of a player for plain Fetches: each is sent and matched without a task or a report row.

It takes the steps of the slow path (`Dispatcher`, `Player`) where these are certain: one broker
leads all partitions, a fetch session goes on, the response has the captured batches. Else the slow
path takes over, with the request in flight if there is one.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct

from construct import Container

from cluster.client.broker_connection import BrokerConnection
from cluster.client.pending_request import PendingRequest, codecs_of, patience_s
from dissector.errors import ReplayError
from dissector.protocol.field_roles import Role
from dissector.protocol.headers import FETCH
from replay.final.log_bounds import Exchange
from replay.mapping.request_rewriter import rewrite
from replay.model.outcome import Outcome, RequestPart
from replay.run.concurrency_limit import InFlight
from replay.run.dispatcher import Dispatcher, StepInFlight
from replay.run.pass_context import PassContext
from replay.sessions.retry_policy import FutileRetries
from replay.templates.fetch_matcher import learn_fetch

_START = Struct(">ihhi")
"""Size, API key, version and correlation id of a request."""


class FetchInFlight(PendingRequest):
    """A Fetch in flight on the fast path, with its step and the captured response."""

    __slots__ = ("_player", "captured", "sent")

    def __init__(
        self,
        player: FetchPlayer,
        connection: BrokerConnection,
        sent: StepInFlight,
        captured: Container,
    ) -> None:
        part = sent.outcome.parts[0]
        super().__init__(connection.peer, FETCH, part.version, patience_s(part.request))
        self._player = player
        self.sent = sent
        self.captured = captured

    def receive(self, frame: bytes) -> None:
        """Match the response; pass one that differs to the slow path."""
        if not self._player.finish(self, frame):
            self._player.hand_over(self).receive(frame)

    def fail(self, failure: ReplayError) -> None:
        """Report the failure by the slow path."""
        self._player.hand_over(self).fail(failure)


class FetchPlayer:
    """
    The plain Fetches of one captured connection.

    Args:
        context: The pass context.
        dispatcher: The dispatcher with the connections to the target.
        in_flight: Receives the requests in flight.
        take_over: Receives a sent step that the slow path is to finish.
        futile_retries: Retries of the connection that are futile; not of Fetches after a match.
    """

    def __init__(
        self,
        context: PassContext,
        dispatcher: Dispatcher,
        in_flight: InFlight[PendingRequest],
        take_over: Callable[[StepInFlight], None],
        futile_retries: FutileRetries,
    ) -> None:
        self._context = context
        self._bodies = context.fetch_bodies
        self._dispatcher = dispatcher
        self._in_flight = in_flight
        self._take_over = take_over
        self._futile_retries = futile_retries

    def send(self, number: int) -> bool:
        """Send a step that is due and has its dependencies; False leaves it to the slow path."""
        context = self._context
        lag_ns = context.ripe_lag_ns(number)
        if lag_ns < 0 or number in context.plan.ended_lives:
            return False
        step = context.plan.step(number)
        captured, version = step.captured, step.captured.api_version
        lowest, highest = context.cluster.versions.get(FETCH, (0, -1))
        if not lowest <= version <= highest:
            return False
        response = self._bodies.captured(captured)
        if response is None:
            return False
        message = captured.request_message()
        body = message.body
        node = None if body is None else context.fetch_sessions.lone_node(captured.broker, body)
        connection = None if node is None else self._dispatcher.open_connection(node)
        if body is None or node is None or connection is None or not connection.can_send:
            return False
        use = context.fetch_sessions.begin(step, message)
        assert use is not None
        context.fetch_sessions.limit(use, version, body, response)
        rewritten = rewrite(message, version, context.ids)
        if rewritten.refusal:
            return False
        changes = rewritten.changes
        changes += context.fetch_sessions.assign_session(use, [(node, rewritten.body)])
        outcome = Outcome(
            step,
            context.pass_number,
            [RequestPart(node, version, rewritten.body)],
            version,
            changes=changes,
            lag_ns=lag_ns,
            unasked=use.left_out,
        )
        sent = StepInFlight(step, outcome, session_use=use)
        request = FetchInFlight(self, connection, sent, response)
        content = b"".join(
            (
                connection.header(FETCH, version),
                codecs_of(FETCH, version).request.build(rewritten.body),
            )
        )
        start = _START.pack(len(content) + 8, FETCH, version, connection.next_id)
        self._in_flight.begin(id(request), request)
        connection.send_batch(request, 1, start + content)
        context.progress.lag_ns = lag_ns
        context.progress.sent += 1
        return True

    def finish(self, request: FetchInFlight, frame: bytes) -> bool:
        """Match a response, and report its step; False if the slow path is to do so."""
        context, sent = self._context, request.sent
        ids, outcome = context.ids, sent.outcome
        (part,) = outcome.parts
        live = self._bodies.live(frame, part.version)
        if live is None or not context.batched_reporter.knows("Fetch", outcome.changes):
            return False
        if context.missing_resources.are_any:
            return False
        found = context.fetch_matcher.match(request.captured, live, outcome.unasked)
        returned = None if found is None else learn_fetch(found, ids)
        if returned is None:
            return False
        assert sent.session_use is not None
        number = sent.step.number
        times = request.sent_ns, request.response_ns
        exchange = Exchange(number, part.node, *times, part.request, live)
        context.written.bounds.record("Fetch", exchange)
        context.fetch_sessions.record_response(sent.session_use, [(part.node, part.request)], live)
        if (session := live.get("session_id")) and request.captured.session_id:
            ids.learn_opaque(Role.SESSION_ID, request.captured.session_id, session)
        for each in returned:
            ids.readers.record(sent.step.captured.connection, number, each)
        latency_ns = request.response_ns - request.sent_ns
        context.batched_reporter.add_one(
            "Fetch", number, (outcome.lag_ns, latency_ns), outcome.changes
        )
        context.progress.done += 1
        self._in_flight.end(id(request))
        if self._futile_retries:
            self._futile_retries -= {each for each in self._futile_retries if each[0] == FETCH}
        context.mark_done(number)
        return True

    def hand_over(self, request: FetchInFlight) -> PendingRequest:
        """Leave a sent request to the slow path; return what awaits its response there."""
        awaited = request.split_one()
        request.sent.requests = [awaited]
        self._in_flight.end(id(request))
        self._take_over(request.sent)
        return awaited
