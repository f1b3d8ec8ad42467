"""Causes of events agree with the broker's own log."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import KafkaException

from tests.broker.conftest import StartCluster
from tests.broker.kafka_cluster import Cluster
from tests.broker.replay.support.recording import record
from tests.broker.server_properties import Shape
from timeline.events.event import Event
from timeline.public import timeline
from tools.record.scenario import PATIENCE_S, Stage, until
from tools.record.scenarios.librdkafka import finish, producer
from tools.record.scenarios.librdkafka_groups import assigned, consumer, fill

pytestmark = pytest.mark.broker

_PREPARING = re.compile(
    r"Preparing to rebalance group (\S+) in state \S+ with old generation (\d+) "
    r"\(reason: (.*)\)\. \(\S+\)$",
    re.MULTILINE,
)
_STABLE = re.compile(r"Stabilized group (\S+) generation (\d+) with (\d+) members")

REASONS = (
    ("on heartbeat expiration", "session timeout"),
    ("explicit `LeaveGroup`", "left"),
    ("Leader ", "leader rejoined"),
    ("Updating metadata", "subscription changed"),
    ("Adding new member", "joined"),
)
"""Kafka's reasons of a rebalance, and our causes."""


def logged(cluster: Cluster, play: Callable[[], Path]) -> tuple[list[Event], str]:
    """Return the events of a capture, and the broker's log of the same time."""
    log = cluster.nodes[0].log
    begin = log.stat().st_size
    path = play()
    return list(timeline(path)), log.read_bytes()[begin:].decode(errors="replace")


def causes_in(log: str, group: str) -> dict[int, str]:
    """Return the cause of each stable generation of a group, from the broker's log."""
    stable = {int(number) for name, number, _ in _STABLE.findall(log) if name == group}
    causes: dict[int, str] = {}
    for name, old, reason in _PREPARING.findall(log):
        if name == group and int(old) + 1 in stable:
            word = next(word for words, word in REASONS if words in reason)
            causes.setdefault(int(old) + 1, word)
    return causes


def causes_of(events: list[Event], group: str) -> dict[int, str]:
    """Return the certain cause of each generation of a group from its events."""
    found = {}
    for each in events:
        if (each.kind, each.event, each.subject) == ("group", "rebalance", group):
            generation = re.match(r"generation (?:\d+ to )?(\d+):", each.text)
            assert generation is not None
            assert each.certain, each.text
            found[int(generation[1])] = each.cause
    return found


@pytest.mark.parametrize("version", ["4.x", "3.9.x"])
@pytest.mark.parametrize("scene", ["group", "group-cooperative", "static-members"])
def test_causes_of_rebalances_equal_those_in_the_log(
    kafka: StartCluster, tmp_path: Path, version: str, scene: str
) -> None:
    cluster = kafka(Shape(version=version))
    name = "kafka4-static-members" if scene == "static-members" else f"kafka4-librdkafka-{scene}"
    events, log = logged(cluster, lambda: record(cluster, name, tmp_path))
    group = f"{name}.group"
    assert causes_of(events, group) == causes_in(log, group) != {}


def test_a_changed_subscription(kafka: StartCluster, tmp_path: Path) -> None:
    cluster = kafka(Shape())

    def play(stage: Stage) -> None:
        fill(stage)
        group = stage.topic("group")
        quick = {"session_timeout_ms": 6000, "heartbeat_interval_ms": 500}
        leader = consumer(stage, group, client_id="leader", **quick)
        leader.subscribe([stage.topic()])
        until("the leader to be assigned", assigned(leader))
        other = consumer(stage, group, client_id="other", **quick)
        other.subscribe([stage.topic()])
        until("both to be assigned", assigned(leader, other))
        more = producer(stage)
        more.produce(stage.topic("more"), b"x")
        finish(more)
        other.subscribe([stage.topic(), stage.topic("more")])
        log = cluster.nodes[0].log

        def rebalanced() -> bool:
            other.poll(0.1)
            leader.poll(0.1)
            reason = log.read_bytes().partition(b"Updating metadata")[2]
            return b"Assignment received from leader" in reason

        until("the group to rebalance", rebalanced)
        until("both to be assigned again", assigned(leader, other))
        leader.close()
        other.close()

    events, log = logged(cluster, lambda: record(cluster, "timeline-subscription", tmp_path, play))
    group = "timeline-subscription.group"
    causes = causes_in(log, group)
    assert causes_of(events, group) == causes
    assert "subscription changed" in causes.values()


def test_causes_of_epochs_equal_those_in_the_log(kafka: StartCluster, tmp_path: Path) -> None:
    cluster = kafka(Shape())
    name = "kafka4-librdkafka-group-848"
    events, log = logged(cluster, lambda: record(cluster, name, tmp_path))
    group = f"{name}.group"
    lines = [line for line in log.splitlines() if f"[GroupId {group}]" in line]
    causes, last = {}, ""
    for line in lines:
        if "joins the consumer group" in line:
            last = "joined"
        elif "left the consumer group" in line:
            last = "left"
        elif bumped := re.search(r"Bumped group epoch to (\d+)", line):
            causes[int(bumped[1])] = last
    found = {}
    for each in events:
        if each.kind == "group" and each.event == "rebalance":
            epoch = re.match(r"epoch (?:\d+ to )?(\d+):", each.text)
            assert epoch is not None
            found[int(epoch[1])] = each.cause
    assert found
    assert found.items() <= causes.items()
    logged_members = list(causes.values())
    ours = [each.event for each in events if each.event in ("joined", "left")]
    assert sorted(ours) == sorted(logged_members)


def test_a_newer_producer_fences_an_older_one(kafka: StartCluster, tmp_path: Path) -> None:
    cluster = kafka(Shape())
    name = "kafka4-librdkafka-fenced"
    events, log = logged(cluster, lambda: record(cluster, name, tmp_path))
    initialized = re.findall(
        r"Initialized transactionalId (\S+) with producerId (\d+) and producer epoch (\d+)", log
    )
    ours = [
        (each.subject, *re.findall(r"producer id (\d+), epoch (\d+)", each.text)[0])
        for each in events
        if (each.kind, each.event) == ("transaction", "initialized")
    ]
    assert ours == initialized
    (fenced,) = [each for each in events if each.event == "fenced" and each.kind == "transaction"]
    assert (fenced.cause, fenced.certain) == ("new producer", True)
    assert "newer at 127.0.0.1 initialized epoch" in fenced.text


def test_a_transaction_outlives_its_timeout(kafka: StartCluster, tmp_path: Path) -> None:
    # The coordinator checks for expired transactions at intervals.
    shape = Shape(
        properties=(("transaction.abort.timed.out.transaction.cleanup.interval.ms", "500"),)
    )
    cluster = kafka(shape)

    def play(stage: Stage) -> None:
        writer = producer(
            stage, transactional_id=stage.topic("tx"), transaction_timeout_ms=2000, client_id="slow"
        )
        writer.init_transactions(PATIENCE_S)
        writer.begin_transaction()
        writer.produce(stage.topic(), b"late", partition=0)
        writer.flush(PATIENCE_S)
        log = stage.cluster.nodes[0].log
        begin = log.stat().st_size
        until(
            "the coordinator to abort",
            lambda: b"ollback" in log.read_bytes()[begin:] or None,
        )
        with pytest.raises(KafkaException):
            writer.commit_transaction(PATIENCE_S)

    events, log = logged(cluster, lambda: record(cluster, "timeline-expired", tmp_path, play))
    assert (
        "Completed rollback of ongoing transaction for transactionalId timeline-expired.tx" in log
    )
    (fenced,) = [each for each in events if each.kind == "transaction" and each.event == "fenced"]
    assert (fenced.cause, fenced.certain) == ("transaction timeout", True)
