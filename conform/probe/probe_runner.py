"""Runs the probes against a running broker, one after the other, and cleans up."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from conform.evidence.offered_versions import release_of
from conform.probe.probe_fixtures import Own
from conform.probe.probe_registry import Probed
from conform.probe.probe_reporter import LiveSay
from conform.probe.probe_target import Gone, NotJudged, Target, Unanswered
from conform.probe.raw_exchange import request_text
from conform.registry.kafka_releases import Match, best_match
from conform.registry.rule import Rule
from conform.registry.verdict import Verdict
from dissector.errors import ReplayError
from replay.client.auth import Security

TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """
    Result of probing a broker.

    Attributes:
        verdict: The verdict of the rules.
        match: The releases that the broker matches best.
        left: Topics and groups of ours that could not be removed, each with the reason.
    """

    verdict: Verdict
    match: Match
    left: tuple[str, ...]


def _nobody(text: str) -> None:
    """Discard a message."""


async def probe_broker(
    target: str,
    rules: Iterable[Rule],
    *,
    security: Security = Security(),  # noqa: B008 (frozen)
    timeout_s: float = TIMEOUT_S,
    allow_writes: bool = False,
    tell: Callable[[str], None] = _nobody,
    warn: Callable[[str], None] = _nobody,
) -> Outcome:
    """
    Probe a running broker.

    Args:
        target: `host:port`.
        rules: The rules to apply; only those for running brokers are used.
        security: How connections are encrypted and authenticated.
        timeout_s: How long a response may take.
        allow_writes: Whether to create topics, groups and transactions of our own meanwhile.
        tell: Receives the current rule.
        warn: Receives what could not be removed, also where the probe is interrupted.

    Raises:
        UsageError: The target is not an address.
        ReplayError: It can't be reached, or is not a broker.
    """
    chosen = sorted((rule for rule in rules if rule.on == "live"), key=lambda rule: rule.order)
    verdict = Verdict(chosen)
    broker = await Target.connect(target, security, timeout_s, allow_writes)
    own = Own(broker)
    left: list[str] = []
    gone = ""
    try:
        for rule in chosen:
            if gone:
                verdict.tallies[rule.id].unjudged[gone] += 1
                continue
            tell(f"{rule.id} {rule.title}")
            if not await _ask(rule, Probed(broker, own), verdict):
                gone = f"the broker did not come back after {rule.id}"
    finally:
        if allow_writes:
            tell("removing what was made")
            left = own.all_left(gone) if gone else await own.remove()
            for each in left:
                warn(f"left behind: {each}")
        broker.close()
    return Outcome(verdict, best_match(broker.offered), tuple(left))


async def _ask(rule: Rule, probed: Probed, verdict: Verdict) -> bool:
    """Run one probe; return whether the broker is still there, or has come back."""
    target, tally = probed.target, verdict.tallies[rule.id]
    say = LiveSay(rule, verdict, target.shown, release_of(target.offered))
    target.begin()
    begun_ns = time.perf_counter_ns()
    try:
        await _survived(rule, probed, say)
    except Gone as why:
        say.unjudged(str(why))
        return False
    finally:
        tally.seconds = (time.perf_counter_ns() - begun_ns) / 1e9
    if not tally.judged and not tally.unjudged:
        say.unjudged("the broker offers nothing that can be asked about it")
    return True


async def _survived(rule: Rule, probed: Probed, say: LiveSay) -> None:
    """Run one probe, and check whether the broker is still there if it closed a connection."""
    target, refused = probed.target, ""
    try:
        await rule.call(probed, say)
    except Gone:
        raise
    except Unanswered as why:
        say.unanswered(why.said)
    except NotJudged as why:
        say.unjudged(str(why))
    except ReplayError as why:
        refused = str(why)
    except Exception as error:
        say.failed(error)
    if not (refused or target.losses):
        return
    if not await probed.survives(say, target.sent, request_text(target.sent)):
        say.unjudged("the rest of the rule was not asked: the broker went away")
    elif refused:
        say.unjudged(refused)
