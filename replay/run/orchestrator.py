"""Replays a plan against a target, compares the responses, and reports."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from dissector.errors import ReplayError
from replay.client.cluster import Cluster
from replay.client.topic_admin import EARLIEST, LATEST, create_topics, offsets
from replay.compare.ignore_rules import NO_RESPONSE, Noise
from replay.compare.step_verdict import compare_outcome
from replay.mapping.id_map import IdMap
from replay.mock.embedded_broker import Embedded
from replay.model.outcome import Difference, Outcome, Verdict
from replay.options.pass_criteria import Criteria
from replay.options.target_settings import MOCK, TargetSettings
from replay.plan.plan import Plan
from replay.report.report import Report
from replay.run import event_loop
from replay.run.runner import Run
from replay.templates.template import warm_up

Watch = Callable[[Run, Report], None]
"""Called regularly to show the progress of a run."""

INTERRUPTED, TERMINATED = "interrupted", "terminated"
ENDINGS = {INTERRUPTED: signal.SIGINT, TERMINATED: signal.SIGTERM}
"""Reason for an early end -> its signal."""

_WATCH_S = 0.2
_MOST_BROKERS = 16


def drive(plan: Plan, setting: TargetSettings, watch: Watch | None = None) -> Report:
    """
    Replay a plan and report; Ctrl-C ends it early, with the report so far.

    A target that can't be reached ends it too: `Report.ended` has the reason.

    Args:
        plan: The plan.
        setting: Target and options.
        watch: Called several times a second during the replay.
    """
    with target(plan, setting) as addresses:
        return event_loop.run(_drive(plan, setting, addresses, watch))


@contextlib.contextmanager
def target(plan: Plan, setting: TargetSettings) -> Iterator[list[str]]:
    """Yield the addresses of the target; the embedded broker runs until the block ends."""
    if setting.to != MOCK:
        yield setting.to.split(",")
        return
    brokers = min(max(len(plan.brokers), 1), _MOST_BROKERS)
    with Embedded(brokers, setting.live_topics(plan.topics)) as embedded:
        yield embedded.addresses


def learn_noise(plan: Plan, setting: TargetSettings, watch: Watch | None = None) -> tuple[str, ...]:
    """
    Replay a plan twice against a reference; return the patterns of all differences as ignore rules.

    Missing responses are not ignored.

    Raises:
        ReplayError: The replay against the reference ended early.
    """
    options = replace(setting.play_options, loop=2)
    twice = replace(setting, play_options=options, noise=Noise(), criteria=Criteria())
    report = drive(plan, twice, watch)
    if report.ended:
        raise ReplayError(setting.to, f"no noise could be learned: {report.ended}")
    return tuple(place for place in sorted(report.places) if not place.endswith(NO_RESPONSE))


async def _drive(
    plan: Plan, setting: TargetSettings, addresses: list[str], watch: Watch | None
) -> Report:
    report = Report(plan, setting)
    with _interruptible(report) as ending:
        work = asyncio.create_task(_work(plan, setting, addresses, watch, report, ending))
        ending.stop = work.cancel
        await asyncio.wait([work])
    if not work.cancelled():
        work.result()
    return report


class _Ending:
    """
    Ends a replay early.

    Attributes:
        stop: Stops the current phase of the replay.
    """

    def __init__(self, report: Report) -> None:
        self._report = report
        self.stop: Callable[[], object] = lambda: None

    def because(self, why: str) -> None:
        """End the replay, with the reason for the report."""
        self._report.ended = why
        self.stop()


async def _work(
    plan: Plan,
    setting: TargetSettings,
    addresses: list[str],
    watch: Watch | None,
    report: Report,
    ending: _Ending,
) -> None:
    begin_ns = time.perf_counter_ns()
    try:
        timeout_s = setting.play_options.timeout_s
        cluster = await Cluster.connect(addresses, setting.security, timeout_s)
    except ReplayError as error:
        report.ended = str(error)
        return
    try:
        report.about.learn_target(
            cluster.cluster_id, cluster.features, len(cluster.brokers), setting.to == MOCK
        )
        worlds = await _worlds(plan, setting, cluster)
        warm_up(plan.alike * setting.play_options.loop)
        gc.freeze()  # repeated collections over the plan would delay requests
        begin_ns = time.perf_counter_ns()
        judge = _Judge(report, setting, worlds.made | plan.created)
        run = Run(plan, cluster, worlds, judge, setting.play_options)
        ending.stop = run.stop
        cluster.on_silent = lambda error: ending.because(str(error))
        await _play(run, report, watch)
        if not report.sent and not report.ended:
            report.ended = _why_nothing(plan)
    except ReplayError as error:
        report.ended = str(error)
    finally:
        gc.unfreeze()
        report.elapsed_ns = time.perf_counter_ns() - begin_ns
        cluster.close()


def _why_nothing(plan: Plan) -> str:
    """Return why nothing was sent, as an empty report would look like success."""
    if not len(plan):
        return "nothing was sent: no Kafka request was chosen from what was captured (-Y, --port)"
    return f"nothing was sent: none of {len(plan):,} requests can be (--dry-run tells why)"


class _Judge:
    """Compares the responses of steps, and adds the verdicts to a report."""

    def __init__(self, report: Report, setting: TargetSettings, made: frozenset[str]) -> None:
        self._report = report
        self._setting = setting
        self._made = made
        self.alike = report.add_alike

    def outcome(self, outcome: Outcome, world: IdMap) -> Verdict:
        verdict, differences = compare_outcome(
            outcome,
            world,
            self._setting.noise,
            created_topics=self._made,
            captured_topics=self._report.plan.topics,
            show_secrets=self._setting.show_secrets,
        )
        self._report.add(outcome, verdict, differences)
        return verdict

    def afterwards(self, number: int, copy: int, difference: Difference) -> None:
        step, noise = self._report.plan.step(number), self._setting.noise
        if noise is None or not noise.covers(step.captured.api, difference.path):
            self._report.revise(step, copy, difference)


async def _play(run: Run, report: Report, watch: Watch | None) -> None:
    watching = asyncio.create_task(_keep_watching(run, report, watch)) if watch else None
    try:
        await run.play()
    finally:
        if watching is not None and watch is not None:
            watching.cancel()
            watch(run, report)
    report.remains += run.remains
    report.left_open += run.left_open


async def _keep_watching(run: Run, report: Report, watch: Watch) -> None:
    while True:
        await asyncio.sleep(_WATCH_S)
        watch(run, report)


@contextlib.contextmanager
def _interruptible(report: Report) -> Iterator[_Ending]:
    """Let the first Ctrl-C or SIGTERM end the replay; a second one ends the process."""
    loop = asyncio.get_running_loop()
    ending = _Ending(report)

    def stop(why: str) -> None:
        ending.because(why)
        loop.remove_signal_handler(ENDINGS[why])

    # Signal handlers are unavailable in other threads and on some platforms.
    with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
        for why, number in ENDINGS.items():
            loop.add_signal_handler(number, stop, why)
    try:
        yield ending
    finally:
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
            for number in ENDINGS.values():
                loop.remove_signal_handler(number)


class Worlds:
    """
    Creates the id mapping of each pass.

    Args:
        setting: Names and offset policy.
        cluster: The target.
        bounds: Topic on the target and partition -> its earliest and latest offset.
        made: Topics created for the replay, by their captured names.
    """

    def __init__(
        self,
        setting: TargetSettings,
        cluster: Cluster,
        bounds: dict[tuple[str, int], tuple[int, int]],
        made: frozenset[str],
    ) -> None:
        self._setting = setting
        self._cluster = cluster
        self._bounds = bounds
        self.made = made

    def __call__(self, copy: int) -> IdMap:
        """Return the id mapping of a pass."""
        names = self._setting.names(copy)
        world = IdMap(self._cluster, names, self._setting.offsets)
        for (topic, partition), bounds in self._bounds.items():
            world.offsets.set_bounds(names.captured_topic(topic), partition, *bounds)
        return world


async def _worlds(plan: Plan, setting: TargetSettings, cluster: Cluster) -> Worlds:
    """Create topics if requested, and fetch the offset bounds for the id mappings if needed."""
    topics = setting.live_topics(plan.topics)
    made = set(topics) if setting.to == MOCK else set[str]()
    if setting.create_topics:
        made.update(await create_topics(cluster, topics))
    bounds: dict[tuple[str, int], tuple[int, int]] = {}
    if setting.offsets != "kept":
        partitions = [(topic, each) for topic, count in topics.items() for each in range(count)]
        first = await offsets(cluster, partitions, EARLIEST)
        following = await offsets(cluster, partitions, LATEST)
        bounds = {place: (first[place], following[place]) for place in first if place in following}
    captured = {each for each in plan.topics if setting.names(0).topic(each) in made}
    return Worlds(setting, cluster, bounds, frozenset(captured))
