"""Asks a running broker one probe after the other, and cleans up."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from conform.offer import release_of
from conform.probe.own import Own
from conform.probe.probe import Probed
from conform.probe.releases import Match, best_match
from conform.probe.say import LiveSay
from conform.probe.target import NotJudged, Target
from conform.rule import Rule
from conform.verdict import Verdict
from dissector.errors import EncodeError, ReplayError
from replay.auth import Security

TIMEOUT_S = 10.0

SENSELESS = "the broker's answers make no sense together"
_SENSELESS = (AttributeError, IndexError, KeyError, TypeError, ValueError, EncodeError)
"""
What a probe may stumble upon where an answer has the form that it should have and says null, or
nothing, where Kafka never does.
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """
    What probing gave.

    Attributes:
        verdict: Of the rules.
        match: Which release the broker is most like.
        left: What is ours and could not be removed, each with the reason.
    """

    verdict: Verdict
    match: Match
    left: tuple[str, ...]


def _nobody(text: str) -> None:
    """Tell nobody."""


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
    Ask a running broker.

    Args:
        target: `host:port`.
        rules: Those to ask; of them only the ones for running brokers are.
        security: How connections are encrypted and authenticated.
        timeout_s: How long an answer may take.
        allow_writes: Whether topics, groups and transactions of our own may be made meanwhile.
        tell: Is told which rule is asked.
        warn: Is told what could not be removed, also where the probe is interrupted.

    Raises:
        UsageError: The target is no address.
        ReplayError: It can't be reached, or is no broker.
    """
    chosen = sorted((rule for rule in rules if rule.on == "live"), key=lambda rule: rule.order)
    verdict = Verdict(chosen)
    broker = await Target.connect(target, security, timeout_s, allow_writes)
    own = Own(broker)
    left: list[str] = []
    try:
        for rule in chosen:
            tell(f"{rule.id} {rule.title}")
            await _ask(rule, Probed(broker, own), verdict)
    finally:
        if allow_writes:
            tell("removing what was made")
            left = await own.remove()
            for each in left:
                warn(f"left behind: {each}")
        broker.close()
    return Outcome(verdict, best_match(broker.offered), tuple(left))


async def _ask(rule: Rule, probed: Probed, verdict: Verdict) -> None:
    say = LiveSay(rule, verdict, probed.target.shown, release_of(probed.target.offered))
    probed.target.silences = 0
    try:
        await rule.call(probed, say)
    except (NotJudged, ReplayError) as why:
        say.unjudged(str(why))
    except _SENSELESS as why:
        say.unjudged(f"{SENSELESS}: {type(why).__name__} {why}")
    tally = verdict.tallies[rule.id]
    if not tally.judged and not tally.unjudged:
        say.unjudged("the broker offers nothing that can be asked about it")
