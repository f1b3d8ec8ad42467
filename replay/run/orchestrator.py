"""Replays a plan against a target, compares the responses, and reports."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from cluster.client.cluster import Cluster
from cluster.client.topic_admin import EARLIEST, LATEST, create_topics, offsets
from cluster.client.transport import flush_closing
from cluster.mock.embedded_broker import EmbeddedBroker
from dissector.errors import ReplayError
from replay.compare.client_readings import ClientReadings
from replay.compare.ignore_rules import NO_RESPONSE, Noise
from replay.compare.step_verdict import compare_outcome
from replay.mapping.broker_map import BrokerMap
from replay.mapping.id_map import IdMap
from replay.model.outcome import Difference, Outcome, Verdict
from replay.options.pass_criteria import Criteria
from replay.options.target_settings import MOCK, TargetSettings
from replay.plan.plan import Plan
from replay.report.report import Report
from replay.report.run_report import RunReport
from replay.run import event_loop
from replay.run.runner import ReplayRun

ProgressCallback = Callable[[ReplayRun, Report], None]
"""Called regularly to show the progress of a run."""

INTERRUPTED, TERMINATED = "interrupted", "terminated"
END_SIGNALS = {INTERRUPTED: signal.SIGINT, TERMINATED: signal.SIGTERM}
"""Reason for an early end -> its signal."""

_PROGRESS_INTERVAL_S = 0.2
_MAX_BROKERS = 16

_FLUSH_S = 2
"""Timeout for unsent bytes at the end of a replay."""


def run_replay(
    plan: Plan, setting: TargetSettings, watch: ProgressCallback | None = None
) -> Report:
    """
    Replay a plan and report; Ctrl-C ends it early, with the report so far.

    A target that can't be reached ends it too: `Report.ended` has the reason.

    Args:
        plan: The plan.
        setting: Target and options.
        watch: Called several times a second during the replay.
    """
    with running_target(plan, setting) as addresses:
        return replay_at(plan, setting, addresses, watch)


def replay_at(
    plan: Plan, setting: TargetSettings, addresses: list[str], watch: ProgressCallback | None
) -> Report:
    """Replay a plan, as `run_replay` does, at a target that runs already."""
    return event_loop.run(run_until_ended(plan, setting, addresses, watch))


@contextlib.contextmanager
def running_target(plan: Plan, setting: TargetSettings) -> Iterator[list[str]]:
    """Yield the addresses of the target; the embedded broker runs until the block ends."""
    if setting.to != MOCK:
        yield setting.to.split(",")
        return
    brokers = min(max(len(plan.brokers), 1), _MAX_BROKERS)
    with EmbeddedBroker(brokers, setting.live_topics(plan.topics)) as embedded:
        yield embedded.addresses


def learn_noise(
    plan: Plan, setting: TargetSettings, watch: ProgressCallback | None = None
) -> tuple[str, ...]:
    """
    Replay a plan twice against a reference; return the patterns of all differences as ignore rules.

    Missing responses are not ignored.

    Raises:
        ReplayError: The replay against the reference ended early.
    """
    options = replace(setting.play_options, loop=2)
    twice = replace(setting, play_options=options, noise=Noise(), criteria=Criteria())
    report = run_replay(plan, twice, watch)
    if report.ended:
        raise ReplayError(setting.to, f"no noise could be learned: {report.ended}")
    return tuple(place for place in sorted(report.fields) if not place.endswith(NO_RESPONSE))


async def run_until_ended(
    plan: Plan, settings: TargetSettings, addresses: list[str], watch: ProgressCallback | None
) -> Report:
    """Replay in a running event loop; after Ctrl-C the report covers the steps so far."""
    report = RunReport(plan, settings)
    with _interruptible(report) as ending:
        work = asyncio.create_task(
            _connect_and_play(plan, settings, addresses, watch, report, ending)
        )
        ending.stop = work.cancel
        try:
            await asyncio.wait([work])
        except asyncio.CancelledError:
            work.cancel()
            await asyncio.wait([work])
            raise
        # The last requests without a response (acks = 0) may not be sent yet.
        await flush_closing(_FLUSH_S)
    if not work.cancelled():
        work.result()
    return report


class _EarlyEnd:
    """
    Ends a replay early.

    Attributes:
        stop: Stops the current phase of the replay.
    """

    def __init__(self, report: Report) -> None:
        self._report = report
        self.stop: Callable[[], object] = lambda: None

    def end(self, why: str) -> None:
        """End the replay, with the reason for the report."""
        self._report.ended = why
        self.stop()


async def _connect_and_play(
    plan: Plan,
    settings: TargetSettings,
    addresses: list[str],
    watch: ProgressCallback | None,
    report: RunReport,
    ending: _EarlyEnd,
) -> None:
    begin_ns = time.perf_counter_ns()
    try:
        timeout_s = settings.play_options.timeout_s
        cluster = await Cluster.connect(addresses, settings.security, timeout_s)
    except ReplayError as error:
        report.ended = str(error)
        return
    try:
        report.about.learn_target(
            cluster.cluster_id, cluster.features, len(cluster.brokers), settings.to == MOCK
        )
        worlds = await _id_map_factory(plan, settings, cluster)
        begin_ns = time.perf_counter_ns()
        outcomes = _OutcomeRecorder(report, settings, worlds.created_topics | plan.created)
        run = ReplayRun(plan, cluster, worlds, outcomes, settings.play_options)
        ending.stop = run.stop
        cluster.waits_for_return = True
        cluster.on_silent = lambda error: ending.end(str(error))
        await _play(run, report, watch)
        if not report.sent and not report.ended:
            report.ended = "" if plan.is_empty_part else _why_nothing_sent(plan)
    except ReplayError as error:
        report.ended = str(error)
    finally:
        report.elapsed_ns = time.perf_counter_ns() - begin_ns
        cluster.close()


def _why_nothing_sent(plan: Plan) -> str:
    """Return the reason for an empty replay, because an empty report would look like success."""
    if plan.unreadable:
        return f"nothing was sent: {plan.unreadable}"
    if not len(plan):
        return "nothing was sent: no Kafka request was chosen from what was captured (-Y, --port)"
    return f"nothing was sent: none of {len(plan):,} requests can be sent (--dry-run shows why)"


class _OutcomeRecorder:
    """Compares the responses of steps with the captured ones, and adds the verdicts to a report."""

    def __init__(
        self, report: RunReport, settings: TargetSettings, created_topics: frozenset[str]
    ) -> None:
        self._report = report
        self._setting = settings
        self._created_topics = created_topics
        self._readings = ClientReadings(settings.clients, report.plan.clients)
        self.record_batch = report.add_batch
        self.record_logs = report.add_logs

    def record(self, outcome: Outcome, ids: IdMap) -> Verdict:
        verdict, differences = compare_outcome(
            outcome,
            ids,
            self._setting.noise,
            readings=self._readings,
            created_topics=self._created_topics,
            captured_topics=self._report.plan.topics,
            show_secrets=self._setting.show_secrets,
        )
        self._report.add(outcome, verdict, differences)
        return verdict

    def record_late_difference(self, number: int, copy: int, difference: Difference) -> None:
        step, noise = self._report.plan.step(number), self._setting.noise
        if noise is None or not noise.covers(step.captured.api, difference.path):
            self._report.revise(step, copy, difference)


async def _play(run: ReplayRun, report: RunReport, watch: ProgressCallback | None) -> None:
    watching = asyncio.create_task(_report_progress(run, report, watch)) if watch else None
    try:
        await run.play()
    finally:
        if watching is not None and watch is not None:
            watching.cancel()
            watch(run, report)
    report.left_behind += run.left_behind
    report.played_ns = run.played_ns


async def _report_progress(run: ReplayRun, report: RunReport, watch: ProgressCallback) -> None:
    while True:
        await asyncio.sleep(_PROGRESS_INTERVAL_S)
        watch(run, report)


@contextlib.contextmanager
def _interruptible(report: Report) -> Iterator[_EarlyEnd]:
    """Make the first Ctrl-C or SIGTERM end the replay; a second one ends the process."""
    loop = asyncio.get_running_loop()
    ending = _EarlyEnd(report)

    def stop(why: str) -> None:
        ending.end(why)
        loop.remove_signal_handler(END_SIGNALS[why])

    # Signal handlers are unavailable in other threads and on some platforms.
    with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
        for why, number in END_SIGNALS.items():
            loop.add_signal_handler(number, stop, why)
    try:
        yield ending
    finally:
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
            for number in END_SIGNALS.values():
                loop.remove_signal_handler(number)


class IdMapFactory:
    """
    Creates the id mapping of each pass.

    Args:
        setting: Names and offset policy.
        cluster: The target.
        bounds: Topic on the target and partition -> its earliest and latest offset.
        created_topics: Topics created for the replay, by their captured names.
    """

    def __init__(
        self,
        settings: TargetSettings,
        cluster: Cluster,
        bounds: dict[tuple[str, int], tuple[int, int]],
        created_topics: frozenset[str],
    ) -> None:
        self._setting = settings
        self._cluster = cluster
        self._bounds = bounds
        self.created_topics = created_topics

    def __call__(self, copy: int) -> IdMap:
        """Return the id mapping of a pass."""
        names = self._setting.names(copy)
        ids = IdMap(self._cluster, names, self._setting.offsets)
        for (topic, partition), bounds in self._bounds.items():
            ids.offsets.set_bounds(names.captured_topic(topic), partition, *bounds)
        return ids


async def _id_map_factory(plan: Plan, settings: TargetSettings, cluster: Cluster) -> IdMapFactory:
    """Create topics if requested, and fetch the offset bounds for the id mappings if needed."""
    topics = settings.live_topics(plan.topics)
    made = set(topics) if settings.to == MOCK else set[str]()
    if settings.create_topics:
        wanted = {name: n for name, n in plan.topics.items() if not _creates(plan, name, cluster)}
        replicas = settings.live_topics(_as_captured(plan, wanted, cluster))
        made.update(await create_topics(cluster, settings.live_topics(wanted), replicas))
    bounds: dict[tuple[str, int], tuple[int, int]] = {}
    if settings.offsets != "kept":
        # Counts come from the capture: only partitions that the target has are asked for.
        partitions = [
            (name, each)
            for name, count in topics.items()
            for each in cluster.led_partitions(name)
            if each < count
        ]
        first = await offsets(cluster, partitions, EARLIEST)
        following = await offsets(cluster, partitions, LATEST)
        bounds = {place: (first[place], following[place]) for place in first if place in following}
    captured = {each for each in plan.topics if settings.names(0).topic(each) in made}
    return IdMapFactory(settings, cluster, bounds, frozenset(captured))


def _creates(plan: Plan, topic: str, cluster: Cluster) -> bool:
    """
    Return whether the plan itself creates a topic.

    A request for more replicas than the target has brokers would fail, and all that follows.
    """
    placed = plan.replicas.get(topic, {}).values()
    fits = all(len(replicas) <= len(cluster.brokers) for replicas in placed)
    return topic in plan.absent_topics and fits


def _as_captured(
    plan: Plan, wanted: Mapping[str, int], cluster: Cluster
) -> dict[str, list[list[int]]]:
    """
    Return where the replicas of topics are to be: led by the counterparts of captured leaders.

    Led otherwise, a captured Fetch becomes several, without a fetch session.
    """
    brokers = sorted(cluster.brokers)
    if len(brokers) < 2:
        return {}
    counterparts = BrokerMap(cluster)
    counterparts.set_captured_ids(plan.node_ids)
    found: dict[str, list[list[int]]] = {}
    for topic, count in wanted.items():
        known = plan.replicas.get(topic, {})
        if all(each in known for each in range(count)):
            found[topic] = [counterparts.distinct(known[each]) for each in range(count)]
    return found
