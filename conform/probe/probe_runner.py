"""
Runs the probes against a running broker, one after the other, and cleans up.

Probes that may end the broker come last. After an end the others wait for its return, and each
later one tries again, so that a broker that is restarted late is still judged.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from cluster.client.auth import Security
from conform.probe.probe_fixtures import Fixtures
from conform.probe.probe_registry import MAY_KILL, ProbeContext
from conform.probe.probe_reporter import ProbeReporter
from conform.probe.probe_target import BrokerLost, NoResponse, NotJudged, Target
from conform.probe.raw_exchange import describe_request
from conform.registry.rule import Rule
from conform.registry.verdict import Verdict
from dissector.errors import ReplayError
from dissector.protocol.releases.kafka_releases import ReleaseMatch, best_match, release_of

TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """
    Result of probing a broker.

    Attributes:
        verdict: The verdict of the rules.
        match: The releases that the broker matches best.
        leftovers: The probes' topics and groups that could not be removed, with the reasons.
    """

    verdict: Verdict
    match: ReleaseMatch
    leftovers: tuple[str, ...]


def _discard(text: str) -> None:
    """Discard a message."""


async def probe_broker(
    target: str,
    rules: Iterable[Rule],
    *,
    security: Security = Security(),  # noqa: B008 (frozen)
    timeout_s: float = TIMEOUT_S,
    allow_writes: bool = False,
    on_progress: Callable[[str], None] = _discard,
    on_warning: Callable[[str], None] = _discard,
) -> ProbeResult:
    """
    Probe a running broker.

    Args:
        target: `host:port`.
        rules: The rules to apply; only those for running brokers are used.
        security: How connections are encrypted and authenticated.
        timeout_s: Timeout of each response.
        allow_writes: Whether the probes may create topics, groups and transactions.
        on_progress: Receives the current rule.
        on_warning: Receives each leftover, also after an interruption.

    Raises:
        UsageError: The target is not an address.
        ReplayError: It can't be reached, or is not a broker.
    """
    chosen = sorted((rule for rule in rules if rule.on == "live"), key=lambda rule: rule.order)
    verdict = Verdict(chosen)
    in_sequence = sorted(chosen, key=lambda rule: rule.id in MAY_KILL)
    broker = await Target.connect(target, security, timeout_s, allow_writes)
    fixtures = Fixtures(broker)
    leftovers: list[str] = []
    lost = ""
    try:
        for rule in in_sequence:
            on_progress(f"{rule.id} {rule.title}")
            if lost and not await _has_returned(broker, fixtures):
                verdict.tallies[rule.id].unjudged[lost] += 1
                continue
            lost = ""
            if not await _run_probe(rule, ProbeContext(broker, fixtures), verdict):
                lost = f"the broker did not come back after {rule.id}"
    finally:
        if allow_writes:
            on_progress("removing the created topics and groups")
            leftovers = fixtures.list_leftovers(lost) if lost else await fixtures.remove()
            for leftover in leftovers:
                on_warning(f"left behind: {leftover}")
        broker.close()
    return ProbeResult(verdict, best_match(broker.offered), tuple(leftovers))


async def _has_returned(broker: Target, fixtures: Fixtures) -> bool:
    """Return whether a lost broker is available again; its topics may be lost."""
    try:
        is_back = await broker.has_returned()
    except (ReplayError, NotJudged):
        return False
    fixtures.forget_topics()
    return is_back


async def _run_probe(rule: Rule, context: ProbeContext, verdict: Verdict) -> bool:
    """Run one probe; return whether the broker is still available."""
    target, tally = context.target, verdict.tallies[rule.id]
    reporter = ProbeReporter(rule, verdict, target.address, release_of(target.offered))
    target.reset_counters()
    start_ns = time.perf_counter_ns()
    try:
        await _run_and_check(rule, context, reporter)
    except BrokerLost as error:
        reporter.count_unjudged(str(error))
        return False
    finally:
        tally.seconds = (time.perf_counter_ns() - start_ns) / 1e9
    if not tally.judged and not tally.unjudged:
        reporter.count_unjudged("the broker offers no API that the rule examines")
    return True


async def _run_and_check(rule: Rule, context: ProbeContext, reporter: ProbeReporter) -> None:
    """Run one probe, and check whether the broker is still there if it closed a connection."""
    target, error_text = context.target, ""
    try:
        await rule.call(context, reporter)
    except BrokerLost:
        raise
    except NoResponse as error:
        reporter.report_no_response(error.exchange)
    except NotJudged as error:
        reporter.count_unjudged(str(error))
    except ReplayError as error:
        error_text = str(error)
    except Exception as error:
        reporter.record_exception(error)
    if not (error_text or target.closed_connections):
        return
    if not await context.check_still_serving(
        reporter, target.last_sent, describe_request(target.last_sent)
    ):
        reporter.count_unjudged("the rest of the rule was skipped: the broker went away")
    elif error_text:
        reporter.count_unjudged(error_text)
