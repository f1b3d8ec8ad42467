"""What becomes of each captured request when a capture is played at the embedded broker."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from cluster.client.cluster import Cluster
from cluster.conversion.resource_names import NameMap
from cluster.mock.embedded_broker import EmbeddedBroker
from replay.compare.log_balance import SharedLog, UnbalancedLog
from replay.compare.step_verdict import compare_outcome
from replay.mapping.id_map import IdMap
from replay.model.outcome import BatchedOutcome, Difference, Outcome, Reason, Verdict
from replay.options.pacing import Pace
from replay.options.play_options import PlayOptions
from replay.plan.plan import Plan
from replay.run.runner import ReplayRun

TIMEOUT_S = 3
AT_ONCE = 32
"""Plays at the same time: they mostly wait for long polls and for timeouts."""


class Planned(NamedTuple):
    """
    A captured request in a plan.

    Attributes:
        time_ns: When it was sent.
        api: Its API.
        version: Its version.
        correlation_id: Its correlation id.
        after: Numbers of the steps that it waits for.
        left_out: Why it is not sent; empty if it is.
    """

    time_ns: int
    api: str
    version: int
    correlation_id: int
    after: tuple[int, ...]
    left_out: str


class PlayedStep(NamedTuple):
    """
    What became of a step.

    Attributes:
        verdict: The verdict on its response.
        reasons: Why it is equivalent.
        failure: Why it was not sent or has no response.
        version: The version sent.
        parts: The number of requests sent.
        differences: Field, captured value, replayed value.
    """

    verdict: Verdict
    reasons: frozenset[Reason]
    failure: str
    version: int
    parts: int
    differences: tuple[tuple[str, Any, Any], ...]


class Played(NamedTuple):
    """A plan, and what became of its steps by their numbers."""

    planned: list[Planned]
    steps: dict[int, PlayedStep]


class _StepRecorder:
    """Judges all outcomes as `replay` does, and keeps the verdicts."""

    def __init__(self, plan: Plan) -> None:
        self.steps: dict[int, PlayedStep] = {}
        self._plan = plan

    def record(self, outcome: Outcome, ids: IdMap) -> Verdict:
        topics = self._plan.topics
        verdict, found = compare_outcome(
            outcome, ids, created_topics=topics, captured_topics=topics
        )
        self.steps[outcome.step.number] = PlayedStep(
            verdict,
            outcome.reasons,
            outcome.failure,
            outcome.version,
            len(outcome.parts),
            tuple(map(_shown, found)),
        )
        return verdict

    def record_batch(self, batch: BatchedOutcome) -> None:
        version = self._plan.step(int(batch.step_numbers[0])).captured.api_version
        same = PlayedStep(Verdict.SAME, frozenset(), "", version, 1, ())
        self.steps |= dict.fromkeys(batch.step_numbers.tolist(), same)

    def record_late_difference(self, number: int, copy: int, difference: Difference) -> None:
        step = self.steps[number]
        found = (*step.differences, _shown(difference))
        self.steps[number] = step._replace(verdict=Verdict.DIFFERS, differences=found)

    def record_logs(
        self, number: int, unbalanced: Iterable[UnbalancedLog], shared: Iterable[SharedLog]
    ) -> None:
        """Nothing: logs have no step of their own."""


def _shown(difference: Difference) -> tuple[str, Any, Any]:
    return difference.path, difference.captured, difference.replayed


class Job(NamedTuple):
    """A capture to play, with the key logs that open it."""

    capture: Path
    keylogs: tuple[Path, ...] = ()


def play(job: Job) -> Played:
    """Play a capture at an embedded broker of its own, as fast as responses arrive."""
    with ExitStack() as stack:
        plan = stack.enter_context(Plan.of(job.capture, keylogs=job.keylogs))
        brokers = max(len(plan.brokers), 1)
        embedded = stack.enter_context(EmbeddedBroker(brokers, plan.topics))
        steps = asyncio.run(_play(plan, embedded.addresses))
        planned = [
            Planned(
                step.captured.request_time_ns,
                step.captured.api,
                step.captured.api_version,
                step.captured.correlation_id,
                step.after,
                step.left_out,
            )
            for step in plan
        ]
    return Played(planned, steps)


async def _play(plan: Plan, addresses: list[str]) -> dict[int, PlayedStep]:
    cluster = await Cluster.connect(addresses, timeout_s=TIMEOUT_S)
    recorder = _StepRecorder(plan)
    options = PlayOptions(Pace(0), timeout_s=TIMEOUT_S)
    try:
        await ReplayRun(
            plan, cluster, lambda _: IdMap(cluster, NameMap()), recorder, options
        ).play()
    finally:
        cluster.close()
    return recorder.steps


def play_all(jobs: Iterable[Job]) -> list[Played]:
    """Play captures at the same time, in threads of this process."""
    with ThreadPoolExecutor(AT_ONCE, "play") as threads:
        return list(threads.map(play, jobs))
