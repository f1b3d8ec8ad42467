"""What was recorded on one fresh cluster does the same to another of the same version."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from construct import Container

from replay import Plan, replay
from replay.auth import Security
from replay.policy import BROKERS_TALK
from tests.broker.kafka import Cluster
from tests.broker.replay.connects import connects
from tests.broker.replay.found import found
from tests.broker.replay.lines import (
    Case,
    Line,
    Part,
    Played,
    create,
    encrypted,
    play_all,
    play_alone,
)
from tests.broker.replay.recording import fresh, record
from tests.broker.settings import PASSWORD, USER, Shape
from tools.record.scenario import Stage
from tools.record.scenarios.sweep_client import Speaker, patiently
from tools.record.scenarios.sweep_transactions import (
    ADD_PARTITIONS,
    DESCRIBE_TRANSACTIONS,
    END_TXN,
    WRITE_MARKERS,
    transactions,
)

pytestmark = [
    pytest.mark.broker,
    pytest.mark.xdist_group("broker"),
    pytest.mark.timeout(900),  # the first test waits for all lines
    # What librdkafka's admin client advises against is asked all the same.
    pytest.mark.filterwarnings("ignore:alter_configs has been deprecated:DeprecationWarning"),
]

KEEPS_ALL = (("log.retention.ms", "-1"),)
"""Sweeps write records that are older than brokers keep them."""

AT_ONCE = (
    ("group.consumer.assignment.interval.ms", "0"),
    ("group.share.assignment.interval.ms", "0"),
    ("group.streams.assignment.interval.ms", "0"),
    ("group.streams.initial.rebalance.delay.ms", "0"),
)
"""Else time decides which heartbeat of a sweep is told what the broker assigns."""

ALL_VERSIONS = (
    ("unstable.api.versions.enable", "true"),
    ("unstable.feature.versions.enable", "true"),
)


ANSWERED = "status != unanswered"
"""Versions that a broker does not take it does not answer; a replay asks in others."""


def logged_in(target: Cluster) -> Security:
    return Security(mechanism="SCRAM-SHA-256", username=USER, password=PASSWORD)


class Patient(Speaker):
    """
    Goes on when the markers of a transaction are written: else chance decides where they lie.

    What it asks for that is asked where nothing is captured.
    """

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage.cluster.bootstrap())
        self._aside = Speaker(stage.cluster.nodes[0].address.at("INTERNAL"))

    def __exit__(self, *error: Any) -> None:
        """Close the connections."""
        self._aside.__exit__(*error)
        super().__exit__(*error)

    def turn(self, key: int, number: int, /, **fields: Any) -> Container | None:
        """Say what is to be said, and wait where a transaction ends."""
        answer = super().turn(key, number, **fields)
        if key == END_TXN:
            patiently("markers", lambda: self._has_ended(fields["transactional_id"]))
        return answer

    def _has_ended(self, name: str) -> bool:
        told = self._aside.newest(DESCRIBE_TRANSACTIONS, transactional_ids=[name])
        assert told is not None, "nobody answers DescribeTransactions"
        return told.transaction_states[0].transaction_state.startswith("Complete")


def said_by_clients(stage: Stage) -> None:
    """Say of transactions what clients say, and nothing that only brokers do (KIP-890)."""
    with Patient(stage) as speaker:
        speaker.offered[ADD_PARTITIONS] = range(4)
        del speaker.offered[WRITE_MARKERS]
        transactions(speaker)


def without_answers(name: str) -> Case:
    """With acks 0, and while its topic comes to be, a broker may lose records; none is told."""
    return Case(name, creates=(f"{name}.orders",))


LINES: tuple[Line, ...] = (
    (
        Shape(properties=KEEPS_ALL),
        (
            # First, as it asks for all topics: then there are no others.
            without_answers("kafka4-kafkajs"),
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
            Case("kafka4-librdkafka-admin", learns=True),
            Case("kafka4-sweep-clients-1", begins="sweep", rests=True),
            Case("kafka4-sweep-clients-2", begins="sweep", rests=True),
            Case("kafka4-sweep-clients-3", begins="sweep", rests=True),
        ),
    ),
    (
        Shape(),
        (
            # First, as they list all groups: then there are none whose members time is up for.
            Case("kafka4-java-tools", rests=True),
            Case("kafka4-java-admin", learns=True),
            Case("kafka4-throttled"),
            # Only time decides when the session of a member is over.
            Case("kafka4-static-members", speed=1),
            Case("kafka4-java-clients"),
            Case("kafka4-java-share-group"),
            Case("kafka4-franz-go"),
        ),
    ),
    (
        Shape("3.9.x"),
        (
            Case("kafka39-librdkafka-group"),
            Case("kafka39-librdkafka-transactions"),
            Case("kafka39-librdkafka-fenced"),
            Case("kafka39-kafka-python-as-0.8.2"),
            Case("kafka39-kafka-python-as-0.11"),
            Case("kafka39-kafka-python-as-2.0"),
            Case("kafka39-kafka-python-as-3.9"),
            without_answers("kafka39-aiokafka-codecs"),
        ),
    ),
    (
        Shape(sasl=True, tls=True, properties=ALL_VERSIONS + KEEPS_ALL + AT_ONCE),
        (
            Case("kafka4-sweep-admin", begins="sweep.admin", learns=True),
            Case(
                "kafka4-librdkafka-sasl",
                parts=(
                    Part(),
                    Part(secure=logged_in, prefix="sasl-"),
                    Part(secure=encrypted, prefix="tls-"),
                ),
            ),
            Case("kafka4-sweep-data", begins="sweep", parts=(Part(ANSWERED),)),
            Case("kafka4-sweep-too-new"),
            Case("kafka4-sweep-transactions", begins="sweep.transaction", play=said_by_clients),
            Case("kafka4-sweep-groups", begins="sweep"),
            Case("kafka4-sweep-sasl", parts=(Part(secure=logged_in),)),
            Case("kafka4-sweep-share", begins="sweep.share"),
            Case(
                "kafka4-denied",
                parts=(Part('client_id == "admin"'), Part('client_id != "admin"', logged_in)),
            ),
        ),
    ),
)

CASES = {case.name: (shape, case) for shape, cases in LINES for case in cases}

FOR_THE_MOMENT = r"was refused for the moment \(\w+\), and asked again"

LOGS_IN = "belongs to the authentication of the captured client"

LEFT_OUT = {
    "kafka4-franz-go": r"can not be decoded: version 5 of ApiVersions is not known .*",
    "kafka4-denied": LOGS_IN,
    "kafka4-java-admin": BROKERS_TALK,
    "kafka4-librdkafka-sasl": LOGS_IN,
    "kafka4-sweep-admin": f"{LOGS_IN}|is telemetry",
    "kafka4-sweep-clients-1": BROKERS_TALK,
    "kafka4-sweep-clients-2": LOGS_IN,
    "kafka4-sweep-clients-3": f"{LOGS_IN}|{BROKERS_TALK}",
    "kafka4-sweep-sasl": f"{LOGS_IN}|is no Kafka request",
    "kafka4-sweep-share": BROKERS_TALK,
    "kafka4-sweep-too-new": r"can not be decoded: version 99 of ApiVersions is not known .*",
}
"""Scenario -> why some of its requests are never sent."""

JUST_SET = {
    "DescribeAcls.resources[*]",
    "DescribeClientQuotas.entries[*]",
    "DescribeConfigs.results[*].configs[*].config_source",
    "DescribeConfigs.results[*].configs[*].synonyms[*]",
    "DescribeConfigs.results[*].configs[*].value",
    "DescribeTopicPartitions.topics[*].partitions[*]",
    "DescribeUserScramCredentials.results[*].error_code",
    "Metadata.topics[*].partitions[*]",
}
"""
What may be noise where a client asks for what it has just set: the captured broker may not have
known of it yet, and a replay waits until the target does.
"""

NOISE = dict.fromkeys(
    ("kafka4-java-admin", "kafka4-librdkafka-admin", "kafka4-sweep-admin"), JUST_SET
)
"""Scenario -> what may be noise."""

REFUSED = {
    "kafka4-sweep-clients-3": "the capture does not show where producer 0 got its id",
    "kafka4-sweep-data": "the capture nowhere names the topic with id .*",
}
"""Scenario -> why some of its requests can't be: they ask for what there never was."""


@pytest.fixture(scope="module")
def played() -> dict[str, Played | Exception]:
    return play_all(LINES)


@pytest.mark.parametrize("name", CASES)
def test_the_same_broker_does_the_same(
    played: dict[str, Played | Exception], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    Record and play; what differs is told, and done once more with nothing beside it.

    On a busy machine a member's session may end that should not, in the capture or in the replay.
    """
    try:
        _check(name, played[name])
    except Exception as error:
        with capsys.disabled():
            print(f"\n{name} is played again, alone, as it differed: {error}")
        _check(name, play_alone(*CASES[name]))


def _check(name: str, what: Played | Exception) -> None:
    """Hold what became of a case against what should."""
    if isinstance(what, FileNotFoundError):  # a client of another language that can't be had
        pytest.skip(str(what))
    if isinstance(what, Exception):
        raise what
    for why in what.left_out:
        assert re.fullmatch(f"{FOR_THE_MOMENT}|{LEFT_OUT.get(name, '')}", why)
    for report in what.reports:
        assert report.passed, str(report)
        assert all(re.fullmatch(REFUSED.get(name, ""), why) for why in report.refusals)
        assert report.noise.ignored.keys() <= NOISE.get(name, set())
    assert what.after[0] == what.before
    for after in what.after:
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
