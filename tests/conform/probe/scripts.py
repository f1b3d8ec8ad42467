"""Probes of scripted brokers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import conform.probe.probes  # noqa: F401 (puts its rules into the registry)
from cluster.client.auth import Security
from conform.probe.probe_runner import ProbeResult, probe_broker
from conform.registry.rule import REGISTRY
from tests.replay.support.scripted_broker import Answers, Scripted, scripted, single_broker
from tests.waiting import PATIENCE_S

LIVE = {rule.id: rule for rule in REGISTRY.values() if rule.on == "live"}


def probed(
    answers: Answers,
    *ids: str,
    allow_writes: bool = False,
    timeout_s: float = PATIENCE_S,
    security: Security | None = None,
    on_progress: Callable[[str], None] = lambda _: None,
    warn: Callable[[str], None] = lambda _: None,
) -> tuple[ProbeResult, Scripted]:
    """Probe a scripted broker by some rules."""

    async def main() -> tuple[ProbeResult, Scripted]:
        ports: list[int] = []
        async with scripted({**single_broker(ports), **answers}) as broker:
            ports.append(broker.port)
            outcome = await probe_broker(
                f"127.0.0.1:{broker.port}",
                [LIVE[each] for each in ids],
                security=security or Security(),
                timeout_s=timeout_s,
                allow_writes=allow_writes,
                on_progress=on_progress,
                on_warning=warn,
            )
            return outcome, broker

    return asyncio.run(main())


def broken(outcome: ProbeResult) -> list[str]:
    """Return the ids of broken rules."""
    return [finding.found for kind in outcome.verdict for finding in kind.findings]
