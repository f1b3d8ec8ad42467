"""Runs the probes against a running broker, one after the other, and cleans up."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from conform.evidence.offered_versions import release_of
from conform.probe.probe_fixtures import Fixtures
from conform.probe.probe_registry import ProbeContext
from conform.probe.probe_reporter import ProbeReporter
from conform.probe.probe_target import BrokerLost, NoResponse, NotJudged, Target
from conform.probe.raw_exchange import describe_request
from conform.registry.kafka_releases import ReleaseMatch, best_match
from conform.registry.rule import Rule
from conform.registry.verdict import Verdict
from dissector.errors import ReplayError
from replay.client.auth import Security

TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """
    Result of probing a broker.

    Attributes:
        verdict: The verdict of the rules.
        match: The releases that the broker matches best.
        leftovers: Topics and groups of ours that could not be removed, each with the reason.
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
        timeout_s: How long a response may take.
        allow_writes: Whether to create topics, groups and transactions of our own meanwhile.
        on_progress: Receives the current rule.
        on_warning: Receives what could not be removed, also where the probe is interrupted.

    Raises:
        UsageError: The target is not an address.
        ReplayError: It can't be reached, or is not a broker.
    """
    chosen = sorted((rule for rule in rules if rule.on == "live"), key=lambda rule: rule.order)
    verdict = Verdict(chosen)
    broker = await Target.connect(target, security, timeout_s, allow_writes)
    own = Fixtures(broker)
    left: list[str] = []
    gone = ""
    try:
        for rule in chosen:
            if gone:
                verdict.tallies[rule.id].unjudged[gone] += 1
                continue
            on_progress(f"{rule.id} {rule.title}")
            if not await _run_probe(rule, ProbeContext(broker, own), verdict):
                gone = f"the broker did not come back after {rule.id}"
    finally:
        if allow_writes:
            on_progress("removing what was made")
            left = own.list_leftovers(gone) if gone else await own.remove()
            for each in left:
                on_warning(f"left behind: {each}")
        broker.close()
    return ProbeResult(verdict, best_match(broker.offered), tuple(left))


async def _run_probe(rule: Rule, probed: ProbeContext, verdict: Verdict) -> bool:
    """Run one probe; return whether the broker is still there, or has come back."""
    target, tally = probed.target, verdict.tallies[rule.id]
    say = ProbeReporter(rule, verdict, target.address, release_of(target.offered))
    target.reset_counters()
    begun_ns = time.perf_counter_ns()
    try:
        await _run_and_check(rule, probed, say)
    except BrokerLost as why:
        say.unjudged(str(why))
        return False
    finally:
        tally.seconds = (time.perf_counter_ns() - begun_ns) / 1e9
    if not tally.judged and not tally.unjudged:
        say.unjudged("the broker offers nothing that can be asked about it")
    return True


async def _run_and_check(rule: Rule, probed: ProbeContext, say: ProbeReporter) -> None:
    """Run one probe, and check whether the broker is still there if it closed a connection."""
    target, refused = probed.target, ""
    try:
        await rule.call(probed, say)
    except BrokerLost:
        raise
    except NoResponse as why:
        say.unanswered(why.exchange)
    except NotJudged as why:
        say.unjudged(str(why))
    except ReplayError as why:
        refused = str(why)
    except Exception as error:
        say.failed(error)
    if not (refused or target.closed_connections):
        return
    if not await probed.check_still_serving(
        say, target.last_sent, describe_request(target.last_sent)
    ):
        say.unjudged("the rest of the rule was not asked: the broker went away")
    elif refused:
        say.unjudged(refused)
