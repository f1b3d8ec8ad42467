"""Dispatcher: sends requests of one captured connection to the brokers responsible for them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from construct import Container

from dissector.errors import ReplayError
from dissector.protocol.apis import api
from dissector.protocol.headers import PRODUCE
from dissector.protocol.messages import Message
from replay.client.broker_connection import BrokerConnection
from replay.client.cluster import CoordinatorType
from replay.client.pending_request import PendingRequest, patience_s
from replay.client.router import route
from replay.fields.field_layout import Role
from replay.fields.roles import walk
from replay.mapping.request_rewriter import rewrite
from replay.mapping.version_converter import choose_version
from replay.model.outcome import Outcome, RequestPart
from replay.model.refusal import RewriteError
from replay.model.step import Step
from replay.run.pass_context import Stage
from replay.sessions.live_fetch_sessions import Use
from replay.sessions.live_share_sessions import repeat
from replay.sessions.missing_producers import was_refused
from replay.sessions.partial_retry import accepted_part, keep_refused, refused_places
from replay.sessions.retry_policy import Again
from replay.sessions.transaction_compat import add, addition

_COORDINATED = {
    Role.GROUP: CoordinatorType.GROUP,
    Role.TRANSACTIONAL_ID: CoordinatorType.TRANSACTION,
}

_NAMES = frozenset(_COORDINATED)


@dataclass(slots=True)
class Sent:
    """
    A step in flight.

    Attributes:
        step: The step.
        outcome: Its outcome so far.
        message: The captured request.
        asked: The requests of the last attempt, in the order of the outcome's parts.
        use: Its use of a fetch session.
        taken: Parts that brokers accepted before the rest of the request was retried.
    """

    step: Step
    outcome: Outcome
    message: Message | None = None
    asked: list[PendingRequest] = field(default_factory=list)
    use: Use | None = None
    taken: list[RequestPart] = field(default_factory=list)


class Asking:
    """
    The connections to the target for one captured connection.

    Attributes:
        home: The broker of the target mapped to the captured one.
        quiet_until: End of the throttle time, by the loop's clock; 0 for none.
    """

    def __init__(self, stage: Stage, home: int) -> None:
        self.home = home
        self.quiet_until = 0.0
        self._stage = stage
        self._links: dict[int, BrokerConnection] = {}
        self._failures: dict[int, tuple[float, ReplayError]] = {}
        self._client_id: str | None = None
        self._loop = asyncio.get_running_loop()

    def close(self) -> None:
        """Close all connections."""
        for link in self._links.values():
            link.close()

    def sign(self, step: Step) -> None:
        """Use the client id of the first step that has one."""
        self._client_id = self._client_id or step.captured.client_id

    async def ask(self, sent: Sent) -> None:
        """
        Rewrite a request, and send its parts.

        Raises:
            Refused: It can't be rewritten for the target.
            ReplayError: The target can't be reached.
            EncodeError: The body does not fit its version.
        """
        stage, step, outcome = self._stage, sent.step, sent.outcome
        key, message = step.captured.api_key, sent.message
        assert message is not None
        found = api(key)
        assert found is not None
        version = choose_version(found, step.captured.api_version, stage.cluster.versions)
        if version is None:
            raise RewriteError(f"the target offers no version of {found.name} that we know")
        outcome.version = version
        if message.api == "SyncGroup":
            outcome.changes += stage.groups.assign(message)
        if stage.plan.is_partial:
            about = step.captured, message, self.home, self.link
            outcome.changes += await stage.made_up.prepare(*about)
            outcome.changes += await stage.strangers.introduce(step.captured, message)
        sent.use = sent.use or stage.sessions.begin(step, message)
        rewritten = rewrite(message, outcome.version, stage.world)
        if rewritten.unknown is not None and await self._give(sent, *rewritten.unknown):
            rewritten = rewrite(step.captured.request_message(), outcome.version, stage.world)
        outcome.changes += rewritten.changes
        if rewritten.refusal:
            raise RewriteError(rewritten.refusal)
        await self._add(outcome, rewritten.body)
        parts = await route(key, outcome.version, rewritten.body, stage.cluster, self.home)
        if sent.use is not None:
            outcome.changes += stage.sessions.put(sent.use, parts)
        outcome.changes += stage.shares.put(message, parts)
        for _, body in parts:
            stage.transactions.sent(found.name, body)
            stage.heartbeats.sent(found.name, body)
        outcome.parts = [RequestPart(node, outcome.version, body) for node, body in parts]
        links = [await self.link(node) for node, _ in parts]
        sent.asked = [
            link.send(key, outcome.version, body, step.captured.expects_response, patience_s(body))
            for link, (_, body) in zip(links, parts, strict=True)
        ]

    async def _give(self, sent: Sent, role: str, value: Any) -> bool:
        """
        Obtain a producer id if the capture lacks the InitProducerId.

        Returns:
            Whether the producer has an id now.
        """
        if role != Role.PRODUCER_ID:
            return False
        asked = sent.step.captured.request_message()
        change = await self._stage.made_up.give(
            sent.step.captured, asked, value, self.home, self.link
        )
        sent.outcome.changes += [change] if change else []
        return change is not None

    async def _add(self, outcome: Outcome, body: Container) -> None:
        """Add the partitions or the group of a request to its transaction, unless already added."""
        captured, stage = outcome.step.captured, self._stage
        about = captured.api, captured.api_version, outcome.version, body
        wanted = addition(*about, stage.plan.is_partial and not was_refused(captured))
        if wanted is None or wanted.what <= stage.transactions.added[wanted.title]:
            return
        if await add(wanted, stage.cluster, self.home, self.link) is not None:
            stage.transactions.sent(wanted.api, wanted.body)
            stage.transactions.added[wanted.title].update(wanted.what)
            outcome.changes.append(wanted.change)

    def there(self, node: int) -> BrokerConnection | None:
        """Return the connection to a broker if one is open and usable."""
        link = self._links.get(node)
        return link if link is not None and link.failure is None else None

    async def link(self, node: int) -> BrokerConnection:
        """
        Return the connection to a broker, opened if necessary.

        Raises:
            ReplayError: It can't be reached; raised again without an attempt until the timeout.
        """
        link = self.there(node)
        if link is not None:
            return link
        at, failure = self._failures.get(node, (0.0, None))
        if failure is not None and self._loop.time() < at + self._stage.manner.timeout_s:
            raise ReplayError(failure.address, failure.what, failure.advice)
        try:
            self._links[node] = await self._stage.cluster.open(node, self._client_id)
        except ReplayError as error:
            self._failures[node] = self._loop.time(), error
            raise
        return self._links[node]

    async def ask_again(self, sent: Sent, why: Again, answer: Container) -> None:
        """Retry a request, as far as its response requires; raises as `ask` does."""
        stage, captured = self._stage, sent.step.captured
        sent.message = message = captured.request_message()
        assert message.body is not None
        sent.outcome.changes.clear()
        repeat(message)
        if captured.api_key == PRODUCE and (refused := refused_places(answer, stage.world)):
            sent.taken += filter(None, map(accepted_part, sent.outcome.parts))
            keep_refused(message.body, refused, stage.world)
        if why is Again.MISROUTED:
            await self._look_anew(sent)
        elif why in (Again.MEMBER_ID, Again.MEMBERS) or message.body.get("member_id") == "":
            # Without its id it would join as another member.
            message.body.member_id = answer.get("member_id") or message.body.member_id
        if sent.use is not None and sent.use.session is not None:
            session = sent.use.session
            if session.node < 0:
                stage.sessions.restart(session, message.body)
                sent.use = Use(session, is_new=True)
        await self.ask(sent)

    async def _look_anew(self, sent: Sent) -> None:
        """Refresh the metadata and forget the coordinators of a request."""
        found = api(sent.step.captured.api_key)
        assert found is not None
        for part in sent.outcome.parts:
            for place in walk(found.request, part.version, part.request, _NAMES):
                self._stage.cluster.forget_coordinator(_COORDINATED[place.role], place.value)
        await self._stage.cluster.refresh()
