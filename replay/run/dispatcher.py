"""Dispatcher: sends requests of one captured connection to the brokers responsible for them."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from construct import Container

from cluster.client.broker_connection import BrokerConnection
from cluster.client.cluster import CoordinatorType
from cluster.client.pending_request import PendingRequest, patience_s
from cluster.client.router import route
from cluster.conversion.version_converter import choose_version
from cluster.fields.refusal import RewriteError, UnsupportedByTarget
from cluster.fields.roles import walk
from dissector.errors import ReplayError
from dissector.protocol.apis import api
from dissector.protocol.field_roles import Role
from dissector.protocol.headers import API_VERSIONS, PRODUCE
from dissector.protocol.messages import Message
from dissector.view.text.escape import escaped
from replay.mapping.request_rewriter import rewrite
from replay.model.outcome import Outcome, RequestPart
from replay.model.step import Step
from replay.run.pass_context import PassContext
from replay.sessions.live_fetch_sessions import SessionUse
from replay.sessions.live_share_sessions import make_repeatable
from replay.sessions.missing_producers import was_refused
from replay.sessions.partial_retry import accepted_part, drop_accepted, refused_partitions
from replay.sessions.retry_policy import RetryReason
from replay.sessions.transaction_compat import addition_for, send_addition

_COORDINATOR_TYPES = {
    Role.GROUP: CoordinatorType.GROUP,
    Role.TRANSACTIONAL_ID: CoordinatorType.TRANSACTION,
}

_LONG_PAUSE_S = 1.0
"""Shorter pauses for a throttle time are not reported."""

_LEADER_EPOCHS = frozenset({Role.LEADER_EPOCH})
_COORDINATED_ROLES = frozenset(_COORDINATOR_TYPES)


@dataclass(slots=True)
class StepInFlight:
    """
    A step in flight.

    Attributes:
        step: The step.
        outcome: Its outcome so far.
        message: The captured request.
        requests: The requests of the last attempt, in the order of the outcome's parts.
        session_use: Its use of a fetch session.
        accepted_parts: Parts that brokers accepted before the rest of the request was retried.
    """

    step: Step
    outcome: Outcome
    message: Message | None = None
    requests: list[PendingRequest] = field(default_factory=list)
    session_use: SessionUse | None = None
    accepted_parts: list[RequestPart] = field(default_factory=list)


class Dispatcher:
    """
    The connections to the target for one captured connection.

    Attributes:
        default_node: The broker of the target mapped to the captured one.
        throttled_until: End of the throttle time, by the loop's clock; 0 for none.
    """

    def __init__(self, context: PassContext, default_node: int) -> None:
        self.default_node = default_node
        self.throttled_until = 0.0
        self._context = context
        self._connections: dict[int, BrokerConnection] = {}
        self._opening: defaultdict[int, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._failures: dict[int, tuple[float, ReplayError]] = {}
        self._client_id: str | None = None
        self._loop = asyncio.get_running_loop()

    def close(self) -> None:
        """Close all connections."""
        for connection in self._connections.values():
            connection.close()

    def throttle(self, api_name: str, throttle_ms: int) -> None:
        """Send nothing for the throttle time of a response (KIP-219), or for its limit."""
        options, progress = self._context.options, self._context.progress
        if not options.honours_throttle:
            return
        wanted_s = throttle_ms / 1000
        pause_s = min(wanted_s, options.max_throttle_s)
        self.throttled_until = max(self.throttled_until, self._loop.time() + pause_s)
        if wanted_s >= max(_LONG_PAUSE_S, 2 * progress.longest_throttle_s):
            progress.longest_throttle_s = wanted_s
            client = escaped(self._client_id or "")
            progress.notices.append(
                f"the target throttles client {client!r} after {api_name}: {wanted_s:.3g} s; "
                f"paused for {pause_s:.3g} s (--max-throttle S is a limit)"
            )

    def use_client_id_of(self, step: Step) -> None:
        """Use the client id of the first step with one."""
        self._client_id = self._client_id or step.captured.client_id

    async def send(self, sent: StepInFlight) -> None:
        """
        Rewrite a request, and send its parts.

        Raises:
            RewriteError: It can't be rewritten for the target.
            ReplayError: The target can't be reached.
            EncodeError: The body does not fit its version.
        """
        context, step, outcome = self._context, sent.step, sent.outcome
        key, message = step.captured.api_key, sent.message
        assert message is not None
        found = api(key)
        assert found is not None
        version = choose_version(found, step.captured.api_version, context.cluster.versions)
        if version is None:
            what = f"the target offers no version of {found.name} that we know"
            raise UnsupportedByTarget(what)
        if key == API_VERSIONS:
            version = self._version_after_fallback(step, version)
        outcome.version = version
        if message.api == "SyncGroup":
            outcome.changes += context.groups.assign(message)
        if context.plan.is_partial:
            arguments = step.captured, message, self.default_node, self.connect
            outcome.changes += await context.missing_producers.prepare(*arguments)
            outcome.changes += await context.uncaptured_members.join_missing(step.captured, message)
        outcome.changes += context.acquisitions.assign(message)
        sent.session_use = sent.session_use or context.fetch_sessions.begin(step, message)
        if sent.session_use is not None and message.body is not None:
            response = step.captured.response_message()
            context.fetch_sessions.limit(
                sent.session_use,
                step.captured.api_version,
                message.body,
                response.body if response is not None else None,
            )
            outcome.unasked = sent.session_use.left_out
        rewritten = rewrite(message, outcome.version, context.ids)
        if rewritten.unknown is not None and await self._obtain_producer_id(
            sent, *rewritten.unknown
        ):
            rewritten = rewrite(step.captured.request_message(), outcome.version, context.ids)
        outcome.changes += rewritten.changes
        if rewritten.refusal:
            kind = UnsupportedByTarget if rewritten.is_unsupported else RewriteError
            raise kind(rewritten.refusal)
        await self._add_to_transaction(outcome, rewritten.body)
        parts = await route(
            key, outcome.version, rewritten.body, context.cluster, self.default_node
        )
        if sent.session_use is not None:
            outcome.changes += context.fetch_sessions.assign_session(sent.session_use, parts)
        outcome.changes += context.share_sessions.assign_epochs(message, parts)
        for _, body in parts:
            context.transactions.record_request(found.name, body)
            context.heartbeats.record_request(found.name, body)
            context.written.record_request(found.name, version, body, step.number)
        outcome.parts = [RequestPart(node, outcome.version, body) for node, body in parts]
        connections = [await self.connect(node) for node, _ in parts]
        sent.requests = [
            connection.send(
                key, outcome.version, body, step.captured.expects_response, patience_s(body)
            )
            for connection, (_, body) in zip(connections, parts, strict=True)
        ]

    def _version_after_fallback(self, step: Step, version: int) -> int:
        """
        Return the version of an ApiVersions that the target answers without an error.

        A broker answers a newer version with UNSUPPORTED_VERSION and the versions that it has, and
        clients ask again with the newest of these (KIP-511). Where the capture has that error, its
        next request is the second one.
        """
        captured = step.captured.response_message()
        newest = self._context.cluster.versions.get(API_VERSIONS, (0, version))[1]
        was_refused = captured is not None and captured.body and captured.body.error_code
        if version <= newest or was_refused:
            return version
        self._context.progress.notify_once(
            f"clients ask for ApiVersions v{version}, which the target lacks: "
            f"they fall back to v{newest} (KIP-511)"
        )
        return newest

    async def _obtain_producer_id(self, sent: StepInFlight, role: str, value: Any) -> bool:
        """
        Obtain a producer id if the capture lacks the InitProducerId.

        Returns:
            Whether the producer has an id now.
        """
        if role != Role.PRODUCER_ID:
            return False
        request = sent.step.captured.request_message()
        change = await self._context.missing_producers.obtain_id(
            sent.step.captured, request, value, self.default_node, self.connect
        )
        sent.outcome.changes += [change] if change else []
        return change is not None

    async def _add_to_transaction(self, outcome: Outcome, body: Container) -> None:
        """Add the partitions or the group of a request to its transaction, unless already added."""
        captured, context = outcome.step.captured, self._context
        arguments = captured.api, captured.api_version, outcome.version, body
        wanted = addition_for(*arguments, context.plan.is_partial and not was_refused(captured))
        if wanted is None or wanted.elements <= context.transactions.added[wanted.transactional_id]:
            return
        if (
            await send_addition(wanted, context.cluster, self.default_node, self.connect)
            is not None
        ):
            context.transactions.record_request(wanted.api, wanted.body)
            context.transactions.added[wanted.transactional_id].update(wanted.elements)
            outcome.changes.append(wanted.change)

    def open_connection(self, node: int) -> BrokerConnection | None:
        """Return the connection to a broker if one is open and usable."""
        connection = self._connections.get(node)
        return connection if connection is not None and connection.failure is None else None

    async def connect(self, node: int) -> BrokerConnection:
        """
        Return the connection to a broker, opened if necessary.

        Raises:
            ReplayError: It can't be reached, or its host is not allowed; raised again without an
                attempt until the timeout.
        """
        async with self._opening[node]:  # a repeated request may come from another task
            connection = self.open_connection(node)
            if connection is None:
                connection = self._connections[node] = await self._open(node)
        return connection

    async def _open(self, node: int) -> BrokerConnection:
        at, failure = self._failures.get(node, (0.0, None))
        if failure is not None and self._loop.time() < at + self._context.options.timeout_s:
            raise type(failure)(failure.address, failure.what, failure.advice)
        try:
            return await self._context.cluster.open(node, self._client_id)
        except ReplayError as error:
            self._failures[node] = self._loop.time(), error
            raise

    async def until_processed(self, sent: StepInFlight) -> None:
        """
        Wait until brokers have processed a request that gets no response.

        A broker processes the requests of a connection in order: the response to a later request
        shows that the earlier one took effect.

        Raises:
            ReplayError: A connection is lost, or the broker does not respond.
        """
        for part in sent.outcome.parts:
            connection = self.open_connection(part.node)
            if connection is not None:
                await connection.request(API_VERSIONS, 0, {})

    async def retry(self, sent: StepInFlight, why: RetryReason, response: Container) -> None:
        """Retry a request, as required by its response; raises as `send` does."""
        context, captured = self._context, sent.step.captured
        sent.message = message = captured.request_message()
        assert message.body is not None
        sent.outcome.changes.clear()
        make_repeatable(message)
        if captured.api_key == PRODUCE and (refused := refused_partitions(response, context.ids)):
            sent.accepted_parts += filter(None, map(accepted_part, sent.outcome.parts))
            drop_accepted(message.body, refused, context.ids)
        if why is RetryReason.ASSIGNMENT:
            context.heartbeats.learn_epoch(sent.outcome.parts[0].request, response)
        if why is RetryReason.MISROUTED:
            await self._refresh_routing(sent)
        elif (
            why in (RetryReason.MEMBER_ID, RetryReason.MEMBERS)
            or message.body.get("member_id") == ""
        ):
            # Without its id it would join as another member.
            message.body.member_id = response.get("member_id") or message.body.member_id
        if sent.session_use is not None and sent.session_use.session is not None:
            session = sent.session_use.session
            if session.node < 0:
                context.fetch_sessions.restart(session, message.body)
                sent.session_use = SessionUse(session, is_new=True)
        await self.send(sent)

    async def _refresh_routing(self, sent: StepInFlight) -> None:
        """Refresh the metadata, and look up the coordinators of a request again."""
        found = api(sent.step.captured.api_key)
        assert found is not None
        for part in sent.outcome.parts:
            for place in walk(found.request, part.version, part.request, _COORDINATED_ROLES):
                self._context.cluster.forget_coordinator(
                    _COORDINATOR_TYPES[place.role], place.value
                )
        await self._context.cluster.refresh()
        captured = sent.step.captured.request_message()
        if captured.body is not None and captured.api_version is not None:
            version, body = captured.api_version, captured.body
            for place in walk(found.request, version, body, _LEADER_EPOCHS):
                self._context.ids.forget_epoch(place.scope, place.value)
