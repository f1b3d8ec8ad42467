"""What was recorded on one fresh cluster does the same to another of the same version."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from replay import Plan, replay
from replay.auth import Security
from tests.broker.kafka import Cluster
from tests.broker.replay.connects import connects
from tests.broker.replay.found import found
from tests.broker.replay.lines import Case, Line, Played, create, encrypted, play_all
from tests.broker.replay.recording import fresh, record
from tests.broker.settings import PASSWORD, USER, Shape

pytestmark = [
    pytest.mark.broker,
    pytest.mark.xdist_group("broker"),
    pytest.mark.timeout(900),  # the first test waits for all lines
]

ALL_VERSIONS = (
    ("unstable.api.versions.enable", "true"),
    ("unstable.feature.versions.enable", "true"),
)


ANSWERED = "status != unanswered"
"""Versions that a broker does not take it does not answer; a replay asks in others."""


def logged_in(target: Cluster) -> Security:
    return Security(mechanism="SCRAM-SHA-256", username=USER, password=PASSWORD)


def without_answers(name: str) -> Case:
    """With acks 0, and while its topic comes to be, a broker may lose records; none is told."""
    return Case(name, creates=(f"{name}.orders",))


# Not among them are clients that ask for what they have set at once: the captured broker may or may
# not know of it yet, and so may the target.
LINES: tuple[Line, ...] = (
    (
        Shape(),
        (
            # First, as it asks for all topics: then there are no others.
            Case("kafka4-kafkajs"),
            Case("kafka4-librdkafka-codecs"),
            Case("kafka4-librdkafka-shapes"),
            without_answers("kafka4-librdkafka-acks"),
            Case("kafka4-librdkafka-assigned"),
            Case("kafka4-librdkafka-group"),
            Case("kafka4-librdkafka-group-cooperative"),
            Case("kafka4-librdkafka-group-848"),
            Case("kafka4-librdkafka-transactions"),
            Case("kafka4-librdkafka-fenced"),
            without_answers("kafka4-aiokafka-codecs"),
            Case("kafka4-aiokafka-transactions"),
            Case("kafka4-aiokafka-group"),
            Case("kafka4-errors"),
            Case("kafka4-kafka-python-as-3.6"),
        ),
    ),
    (
        Shape(),
        (
            Case("kafka4-throttled"),
            # Only time decides when the session of a member is over.
            Case("kafka4-static-members", speed=1),
            Case("kafka4-java-clients"),
            Case("kafka4-java-share-group"),
            Case("kafka4-franz-go"),
        ),
    ),
    (
        Shape(sasl=True, tls=True, properties=ALL_VERSIONS),
        (
            Case("kafka4-librdkafka-sasl", secured=(("sasl-", logged_in), ("tls-", encrypted))),
            Case("kafka4-sweep-data", begins="sweep", chosen=ANSWERED),
            Case("kafka4-sweep-too-new"),
        ),
    ),
)

CASES = [case.name for _, cases in LINES for case in cases]

FOR_THE_MOMENT = r"was refused for the moment \(\w+\), and asked again"

LEFT_OUT = {
    "kafka4-franz-go": r"can not be decoded: version 5 of ApiVersions is not known .*",
    "kafka4-librdkafka-sasl": "belongs to the authentication of the captured client",
    "kafka4-sweep-too-new": r"can not be decoded: version 99 of ApiVersions is not known .*",
}
"""Scenario -> why some of its requests are never sent."""

REFUSED = {"kafka4-sweep-data": "the capture nowhere names the topic with id .*"}
"""Scenario -> why some of its requests can't be: they ask for what there never was."""


@pytest.fixture(scope="module")
def played() -> dict[str, Played | Exception]:
    return play_all(LINES)


@pytest.mark.parametrize("name", CASES)
def test_the_same_broker_does_the_same(played: dict[str, Played | Exception], name: str) -> None:
    what = played[name]
    if isinstance(what, FileNotFoundError):  # a client of another language that can't be had
        pytest.skip(str(what))
    if isinstance(what, Exception):
        raise what
    for why in what.left_out:
        assert re.fullmatch(f"{FOR_THE_MOMENT}|{LEFT_OUT.get(name, '')}", why)
    for report, after in zip(what.reports, what.after, strict=True):
        assert report.passed, str(report)
        assert all(re.fullmatch(REFUSED.get(name, ""), why) for why in report.refusals)
        if report is what.reports[0]:
            assert after == what.before
        assert list(after.records.values()) == list(what.before.records.values())


ON_THREE_NODES = {
    "kafka4-librdkafka-codecs": ["orders"],
    "kafka4-librdkafka-group": ["orders"],
    "kafka4-librdkafka-transactions": ["source", "sink"],
}
"""Scenario -> its topics."""


def leaders(first: int) -> dict[str, list[int]]:
    """Return who leads the partitions of all topics, another one for each `first`."""
    nodes = [(first + each) % 3 + 1 for each in range(2)]
    return {f"{name}.{each}": nodes for name, topics in ON_THREE_NODES.items() for each in topics}


def test_leaders_may_be_elsewhere(tmp_path: Path) -> None:
    shape = Shape(nodes=3)
    with fresh(shape) as cluster:
        create(cluster, leaders(0))
        recorded = {
            name: (record(cluster, name, tmp_path), found(cluster, name)) for name in ON_THREE_NODES
        }
    with fresh(shape) as cluster:
        create(cluster, leaders(1))
        for name, (capture, before) in recorded.items():
            with connects() as seen, Plan.of(capture) as plan:
                report = replay(plan, cluster.bootstrap())
            assert report.passed, str(report)
            assert not report.refusals
            assert seen <= set(cluster.bootstrap().split(","))
            assert found(cluster, name) == before
