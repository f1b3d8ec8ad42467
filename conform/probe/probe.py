"""The rules that only a running broker can be asked about, in the one registry of rules."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import wraps
from typing import TypeAlias

from conform.probe.own import Own
from conform.probe.say import LiveSay
from conform.probe.target import Gone, Target
from conform.rule import Severity, rule


@dataclass(frozen=True, slots=True)
class Probed:
    """
    What a probe may use.

    Attributes:
        target: The broker.
        own: What is ours on it; nothing else is to be touched.
    """

    target: Target
    own: Own

    async def survives(self, say: LiveSay, request: bytes, what: str) -> bool:
        """
        Judge whether the broker still serves others after a request; if not, wait for its return.

        Args:
            say: Takes that it went away.
            request: What it was sent last.
            what: What that is.

        Raises:
            Gone: It did not come back.
        """
        why = await self.target.why_gone()
        if not why:
            return True
        say.went_away(why, request, what)
        if not await self.target.comes_back():
            raise Gone("the broker went away and did not come back")
        self.own.renew()
        return False


Probe: TypeAlias = Callable[[Probed, LiveSay], Awaitable[None]]

NOT_ALLOWED = "it writes, which --allow-writes did not allow"


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
    Put a function into the registry as a rule for running brokers.

    Args:
        id: See `conform.rule.Rule`, as for all but the last.
        title: One line.
        severity: How bad it is.
        source: Where Kafka says so.
        asks: What is asked of the broker.
        example: What breaks it.
        writes: Whether it makes topics, groups or transactions: then it is only asked where that
            is allowed.
    """

    def register(call: Probe) -> Probe:
        @wraps(call)
        async def asked(probed: Probed, say: LiveSay) -> None:
            if writes and not probed.target.allow_writes:
                say.unjudged(NOT_ALLOWED)
            else:
                await call(probed, say)

        put = rule(id, title, severity, source=source, asks=asks, example=example, on="live")
        put(asked)
        return asked

    return register
