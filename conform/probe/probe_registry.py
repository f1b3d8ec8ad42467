"""The decorator that registers the rules for running brokers, in the one registry of rules."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import wraps
from typing import TypeAlias

from conform.probe.probe_fixtures import Fixtures
from conform.probe.probe_reporter import ProbeReporter
from conform.probe.probe_target import BrokerLost, Target
from conform.registry.rank import Severity
from conform.registry.rule import rule


@dataclass(frozen=True, slots=True)
class ProbeContext:
    """
    The context of a probe.

    Attributes:
        target: The broker.
        fixtures: Our objects on it; a probe must not touch any others.
    """

    target: Target
    fixtures: Fixtures

    async def check_still_serving(self, say: ProbeReporter, request: bytes, what: str) -> bool:
        """
        Check that the broker still serves others after a request; else wait for its return.

        Args:
            say: Reports that it went away.
            request: The last bytes sent to it.
            what: Description of the request.

        Raises:
            Gone: It did not come back.
        """
        why = await self.target.unavailable_reason()
        if not why:
            return True
        say.broker_lost(why, request, what)
        if not await self.target.wait_for_return():
            raise BrokerLost("the broker went away and did not come back")
        self.fixtures.forget_topics()
        return False


Probe: TypeAlias = Callable[[ProbeContext, ProbeReporter], Awaitable[None]]

WRITES_NOT_ALLOWED = "it writes, which --allow-writes did not allow"


def probe(
    id: str,
    title: str,
    severity: Severity = Severity.ERROR,
    *,
    source: str,
    asks: str,
    example: str,
    writes: bool = False,
) -> Callable[[Probe], Probe]:
    """
    Register a function as a rule for running brokers.

    Args:
        id: See `conform.registry.rule.Rule`, as for all but the last.
        title: One line.
        severity: The default severity of its findings.
        source: Where Kafka defines it.
        asks: The requirement for the broker.
        example: A violation.
        writes: Whether it creates topics, groups or transactions: then it only runs where that
            is allowed.
    """

    def register(call: Probe) -> Probe:
        @wraps(call)
        async def asked(probed: ProbeContext, say: ProbeReporter) -> None:
            if writes and not probed.target.allow_writes:
                say.unjudged(WRITES_NOT_ALLOWED)
            else:
                await call(probed, say)

        put = rule(id, title, severity, source=source, asks=asks, example=example, on="live")
        put(asked)
        return asked

    return register
