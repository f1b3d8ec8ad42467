"""Scenarios recorded on one fresh cluster and played at another, side by side with others."""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic

from replay import Pace, Plan, replay
from replay.auth import Security
from replay.policy import KINDS, Kind
from replay.report import Report
from tests.broker.kafka import Cluster
from tests.broker.replay.found import Found, found
from tests.broker.replay.recording import fresh, record
from tests.broker.settings import Shape

_PATIENCE_S = 30.0


@dataclass(frozen=True)
class Case:
    """
    A scenario, and how it is played.

    Attributes:
        name: Of the scenario.
        speed: 0 for as fast as answers come.
        chosen: A display filter: what is played; all by default.
        creates: Topics that are created before, on both clusters.
        begins: How the names of its topics and groups begin; by default with its own name.
        secured: Prefix -> how the target is logged in to: it is played in these ways, too.
    """

    name: str
    speed: float = 0
    chosen: str = ""
    creates: tuple[str, ...] = ()
    begins: str = ""
    secured: tuple[tuple[str, Callable[[Cluster], Security]], ...] = ()


@dataclass(frozen=True)
class Played:
    """
    What became of a case.

    Attributes:
        reports: Of its replays: plain, and in the ways in which it is secured.
        left_out: Why requests were not sent.
        before: What it left where it was recorded.
        after: What each replay left.
    """

    reports: list[Report]
    left_out: list[str]
    before: Found
    after: list[Found]


Line = tuple[Shape, tuple[Case, ...]]
"""What its clusters are like, and what is recorded and played there, one after the other."""


def play_all(lines: tuple[Line, ...]) -> dict[str, Played | Exception]:
    """Record and play lines side by side; a case that could not be recorded tells why."""
    with ExitStack() as stack, ThreadPoolExecutor(len(lines)) as pool:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        return {
            name: played
            for line in pool.map(partial(_play_line, folder), lines)
            for name, played in line.items()
        }


def _play_line(folder: Path, line: Line) -> dict[str, Played | Exception]:
    shape, cases = line
    recorded: dict[str, tuple[Path, Found]] = {}
    played: dict[str, Played | Exception] = {}
    with fresh(shape) as cluster:
        _prepare(cluster, cases)
        for case in cases:
            try:
                path = record(cluster, case.name, folder)
                recorded[case.name] = path, found(cluster, case.begins or case.name)
            except Exception as error:
                played[case.name] = error
    with fresh(shape) as cluster:
        _prepare(cluster, cases)
        for case in cases:
            if case.name in recorded:
                played[case.name] = _play(case, cluster, *recorded[case.name])
    return played


def _play(case: Case, target: Cluster, capture: Path, before: Found) -> Played:
    ways = [("", Security()), *((prefix, secure(target)) for prefix, secure in case.secured)]
    played = Played([], [], before, [])
    allowed = KINDS[Kind.CHANGING].split()
    with Plan.of(capture, allow=allowed, filter=case.chosen or None) as plan:
        for prefix, security in ways:
            report = replay(
                plan,
                target.bootstrap(_listener(security)),
                pace=Pace(case.speed),
                security=security,
                prefix=prefix,
            )
            played.reports.append(report)
            played.after.append(found(target, prefix + (case.begins or case.name)))
        played.left_out.extend(plan.left_out)
    return played


def _listener(security: Security) -> str:
    if security.mechanism:
        return "SASL_PLAINTEXT"
    return "SSL" if security.tls else "PLAINTEXT"


def encrypted(target: Cluster) -> Security:
    """Say how to speak TLS with a cluster."""
    return Security(ssl.create_default_context(cafile=str(target.certificate)))


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
