"""The decorator that registers probes as rules for running brokers."""

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
        fixtures: The probes' own objects on it; a probe must not touch any others.
    """

    target: Target
    fixtures: Fixtures

    async def check_still_serving(
        self, reporter: ProbeReporter, request: bytes, description: str
    ) -> bool:
        """
        Check that the broker still serves other connections after a request; else wait for it.

        Args:
            reporter: Records that it went away.
            request: The last bytes sent to it.
            description: API and version of the request, or another description of it.

        Raises:
            BrokerLost: The broker did not recover.
        """
        reason = await self.target.unavailable_reason()
        if not reason:
            return True
        reporter.report_broker_lost(reason, request, description)
        if not await self.target.wait_for_return():
            raise BrokerLost("the broker went away and did not come back")
        self.fixtures.forget_topics()
        return False


Probe: TypeAlias = Callable[[ProbeContext, ProbeReporter], Awaitable[None]]

MAY_KILL: set[str] = set()
"""Ids of the probes that may end a broker; they come last, so that all others are judged."""

WRITES_NOT_ALLOWED = "it writes, and --allow-writes is not given"


def probe(
    id: str,
    title: str,
    severity: Severity = Severity.ERROR,
    *,
    source: str,
    asks: str,
    example: str,
    writes: bool = False,
    may_kill: bool = False,
) -> Callable[[Probe], Probe]:
    """
    Register a function as a rule for running brokers.

    Args:
        id: See `conform.registry.rule.Rule`, also for the other arguments except the last.
        title: One line.
        severity: The default severity of its findings.
        source: Where Kafka defines it.
        asks: The requirement for the broker.
        example: A violation.
        writes: Whether it creates topics, groups or transactions; it then requires
            `--allow-writes`.
        may_kill: Whether it sends what has ended brokers: malformed or unknown input.
    """

    def register(function: Probe) -> Probe:
        @wraps(function)
        async def run_if_allowed(context: ProbeContext, reporter: ProbeReporter) -> None:
            if writes and not context.target.allow_writes:
                reporter.count_unjudged(WRITES_NOT_ALLOWED)
            else:
                await function(context, reporter)

        register_rule = rule(
            id, title, severity, source=source, asks=asks, example=example, on="live"
        )
        register_rule(run_if_allowed)
        if may_kill:
            MAY_KILL.add(id)
        return run_if_allowed

    return register
