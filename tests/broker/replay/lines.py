"""Scenarios recorded on one fresh cluster and replayed at another, concurrently with others."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from cluster.client.auth import Security
from replay import Pace, Plan, replay
from replay.options.play_options import PlayOptions
from replay.options.target_settings import TargetSettings
from replay.order.exclusion_policy import EXCLUDED_APIS, Exclusion
from replay.report.report import Report
from replay.run.orchestrator import learn_noise
from tests.broker.kafka_cluster import Cluster
from tests.broker.replay.support.found import Found, found
from tests.broker.replay.support.recording import Play, fresh, record
from tests.broker.server_properties import Shape
from tools.record.manifest import keylogs
from tools.record.scenario import until
from tools.record.sweep.client import SweepClient
from tools.record.sweep.data_sweep import METADATA

_PATIENCE_S = 90.0
_SIDE_BY_SIDE = 4
_ALLOWED = EXCLUDED_APIS[Exclusion.CHANGING].split()


@dataclass(frozen=True)
class Part:
    """
    A part of a case, replayed in one run.

    Attributes:
        chosen: Display filter; everything by default.
        secure: Security settings of the target.
        prefix: Prefix of names on the target; parts with the same one belong together.
    """

    chosen: str = ""
    secure: Callable[[Cluster], Security] = lambda _: Security()
    prefix: str = ""


@dataclass(frozen=True)
class Case:
    """
    A scenario, and its replay.

    Attributes:
        name: Name of the scenario.
        speed: 0 for as fast as responses arrive.
        creates: Topics created in advance, on both clusters.
        begins: Prefixes of its topics and groups; its own name by default.
        parts: Replayed one after the other.
        play: The recorded function; by default the scenario of that name.
        learns: Whether noise is learned first, at the recorded cluster.
        rests: Whether its results change for a while without clients.
        leaves_out: Reasons for omitted requests, as a regular expression.
        refuses: Reasons for impossible requests about nonexistent resources, likewise.
    """

    name: str
    speed: float = 0
    creates: tuple[str, ...] = ()
    begins: str = ""
    parts: tuple[Part, ...] = (Part(),)
    play: Play | None = None
    learns: bool = False
    rests: bool = False
    leaves_out: str = ""
    refuses: str = ""

    def contents_on(self, cluster: Cluster, prefix: str = "") -> Found:
        """Return its results on a cluster."""
        return found(cluster, prefix + (self.begins or self.name), self.rests)


@dataclass(frozen=True)
class Played:
    """
    Results of a case.

    Attributes:
        reports: Reports of its parts.
        left_out: Reasons for unsent requests.
        before: Results on the recorded cluster.
        after: Results of the replays, by prefix.
    """

    reports: list[Report]
    left_out: list[str]
    before: Found
    after: list[Found]


Line = tuple[Shape, tuple[Case, ...]]
"""What its clusters are like, and what is recorded and played there, one after the other."""


Outcomes = dict[str, Played | BaseException]
"""Scenario -> what became of it; if it could not be recorded, why."""


def play_all(lines: tuple[Line, ...]) -> Outcomes:
    """Record and replay lines, a few concurrently."""
    with ExitStack() as stack, ThreadPoolExecutor(_SIDE_BY_SIDE) as pool:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        return {
            name: played
            for line in pool.map(partial(_play_line, folder), lines)
            for name, played in line.items()
        }


def play_alone(shape: Shape, case: Case) -> Played | BaseException:
    """Record and replay a case alone."""
    return play_all(((shape, (case,)),))[case.name]


def _play_line(folder: Path, line: Line) -> Outcomes:
    """Play a line; what ends all of it, such as a cluster's start, is the result of each case."""
    try:
        return _play(folder, *line)
    except (Exception, pytest.skip.Exception) as error:
        return dict.fromkeys((case.name for case in line[1]), error)


def _play(folder: Path, shape: Shape, cases: tuple[Case, ...]) -> Outcomes:
    recorded: dict[str, tuple[Path, Found]] = {}
    played: Outcomes = {}
    with fresh(shape) as cluster:
        _prepare(cluster, cases)
        for case in cases:
            try:
                path = record(cluster, case.name, folder, case.play)
                recorded[case.name] = path, case.contents_on(cluster)
            except Exception as error:
                played[case.name] = error
        learning = (case.name for case in cases if case.learns and case.name in recorded)
        noise = {name: _noise(cluster, recorded[name][0]) for name in learning}
    with fresh(shape) as cluster:
        _prepare(cluster, cases)
        for case in cases:
            if case.name not in recorded:
                continue
            learned_noise = noise.get(case.name, ())
            try:
                played[case.name] = _replayed(case, cluster, *recorded[case.name], learned_noise)
            except Exception as error:
                played[case.name] = error
    return played


def _noise(reference: Cluster, capture: Path) -> tuple[str, ...]:
    setting = TargetSettings(
        reference.bootstrap(), prefix="noise-", play_options=PlayOptions(Pace(0))
    )
    with Plan.of(capture, allow=_ALLOWED, keylogs=keylogs(capture)) as plan:
        return learn_noise(plan, setting)


def _replayed(
    case: Case, target: Cluster, capture: Path, before: Found, noise: tuple[str, ...]
) -> Played:
    played = Played([], [], before, [])
    for part in case.parts:
        security = part.secure(target)
        chosen = part.chosen or None
        with Plan.of(capture, allow=_ALLOWED, filter=chosen, keylogs=keylogs(capture)) as plan:
            report = replay(
                plan,
                target.bootstrap(_listener(security)),
                pace=Pace(case.speed),
                security=security,
                prefix=part.prefix,
                noise=noise,
            )
            played.reports.append(report)
            played.left_out.extend(plan.left_out)
    for prefix in dict.fromkeys(part.prefix for part in case.parts):
        played.after.append(case.contents_on(target, prefix))
    return played


def _listener(security: Security) -> str:
    if security.mechanism:
        return "SASL_PLAINTEXT"
    return "SSL" if security.tls else "PLAINTEXT"


def _prepare(cluster: Cluster, cases: tuple[Case, ...]) -> None:
    topics = {name: [1, 1] for case in cases for name in case.creates}
    if topics:
        create(cluster, topics)


def create(cluster: Cluster, leaders: dict[str, list[int]]) -> None:
    """Create topics: name -> node that leads each partition."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap()})
    nodes = [node.address.node_id for node in cluster.nodes]
    topics = []
    for name, led_by in leaders.items():
        others = [[node, *(each for each in nodes if each != node)] for node in led_by]
        topics.append(NewTopic(name, len(led_by), replica_assignment=others))
    for created in admin.create_topics(topics).values():
        created.result(_PATIENCE_S)
    places = [
        TopicPartition(name, at) for name, led_by in leaders.items() for at in range(len(led_by))
    ]
    until("leaders of new topics", lambda: _are_led(admin, places))
    until("all nodes to know new topics", lambda: _are_known(cluster, list(leaders)))


def _are_led(admin: AdminClient, places: list[TopicPartition]) -> bool:
    results = admin.list_offsets({each: OffsetSpec.latest() for each in places})
    return all(each.exception(_PATIENCE_S) is None for each in results.values())


def _are_known(cluster: Cluster, topics: list[str]) -> bool:
    for node in cluster.nodes:
        with SweepClient(node.address.at("PLAINTEXT")) as speaker:
            metadata = speaker.newest(METADATA, topics=[{"name": each} for each in topics])
        if metadata is None or any(each.error_code for each in metadata.topics):
            return False
    return True
