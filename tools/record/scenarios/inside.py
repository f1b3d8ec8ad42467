"""Three nodes: traffic among brokers and controllers, leader changes, a reassignment."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

from confluent_kafka.admin import AdminClient, NewTopic

from tests.broker import probe
from tests.broker.server_properties import Shape
from tools.record.java_tools import tool
from tools.record.scenario import Stage, orders, scenario, until
from tools.record.scenarios.librdkafka import answers, config, finish, producer
from tools.record.scenarios.librdkafka_groups import consumer, read

# A quorum with short timeouts and few empty fetches.
_QUICK = (
    ("controller.quorum.fetch.timeout.ms", "1500"),
    ("controller.quorum.election.timeout.ms", "500"),
    ("broker.session.timeout.ms", "3000"),
    ("broker.heartbeat.interval.ms", "1000"),
    ("replica.lag.time.max.ms", "3000"),
    ("replica.fetch.wait.max.ms", "1000"),
)
THREE_4 = Shape("4.x", nodes=3, properties=_QUICK)
THREE_39 = Shape("3.9.x", nodes=3, properties=_QUICK)


@scenario(
    "kafka4-three-nodes",
    "Three nodes among themselves: replica fetches, broker heartbeats, controller fetches, "
    "forwarded requests, transaction markers, while a client creates a topic and writes to it",
    client="librdkafka",
    cluster=THREE_4,
    inside=True,
)
@scenario(
    "kafka39-three-nodes",
    "Three nodes among themselves: replica fetches, broker heartbeats, controller fetches, "
    "forwarded requests, transaction markers, while a client creates a topic and writes to it",
    client="librdkafka",
    cluster=THREE_39,
    inside=True,
)
def three_nodes(stage: Stage) -> None:
    create(stage, replicas=3)
    sender = producer(stage, transactional_id=stage.topic("tx"))
    sender.init_transactions(30)
    sender.begin_transaction()
    for key, value in orders(6):
        sender.produce(stage.topic(), value, key)
    sender.commit_transaction(30)


@scenario(
    "kafka4-reassignment",
    "A partition moved from one broker to another, and leaders elected, by Kafka's tools",
    client="java",
    cluster=THREE_4,
    inside=True,
)
def reassignment(stage: Stage) -> None:
    # Its order decides whether a leader can still be elected.
    _create(stage, NewTopic(stage.topic(), 1, replica_assignment=[[1]]))
    sender = producer(stage)
    for key, value in orders(6):
        sender.produce(stage.topic(), value, key)
    finish(sender)
    plan = stage.folder / "plan"
    moves = [{"topic": stage.topic(), "partition": 0, "replicas": [3, 1]}]
    plan.write_text(json.dumps({"version": 1, "partitions": moves}))
    at = ("--bootstrap-server", stage.bootstrap, "--reassignment-json-file", str(plan))
    tool(stage, "tools.reassign.ReassignPartitionsCommand", *at, "--execute")
    tool(stage, "tools.reassign.ReassignPartitionsCommand", *at, "--verify")
    one = ("--topic", stage.topic(), "--partition", "0", "--election-type", "preferred")
    tool(stage, "tools.LeaderElectionCommand", *at[:2], *one)
    plan.unlink()


@scenario(
    "kafka4-leader-change",
    "A broker killed while a client produces and another consumes: errors, new leaders, the "
    "controllers' election, the broker's return",
    client="librdkafka",
    cluster=THREE_4,
)
def leader_change(stage: Stage) -> None:
    create(stage, replicas=3, partitions=3)
    sender = producer(stage, acks="all", topic_metadata_refresh_interval_ms=1000)
    reader = consumer(stage, stage.topic("group"), fetch_wait_max_ms=500)
    reader.subscribe([stage.topic()])
    _send(stage, sender)
    read(reader, 6)
    victim = stage.cluster.nodes[0]
    stage.cluster.stop_node(victim)
    _send(stage, sender)
    read(reader, 6)
    stage.cluster.start_node(victim)
    stage.cluster.wait_until_ready()
    _send(stage, sender)
    read(reader, 6)
    reader.close()


@scenario(
    "kafka4-quorum",
    "The active controller killed: votes, a new quorum leader, the old one comes back",
    client="librdkafka",
    cluster=THREE_4,
    inside=True,
)
def quorum(stage: Stage) -> None:
    _lose_the_controller(stage)


@scenario(
    "kafka39-quorum",
    "The active controller killed: votes, a new quorum leader, the old one comes back",
    client="librdkafka",
    cluster=THREE_39,
    inside=True,
)
def quorum_39(stage: Stage) -> None:
    _lose_the_controller(stage)


def _lose_the_controller(stage: Stage) -> None:
    output = tool(
        stage, "tools.MetadataQuorumCommand", "--bootstrap-server", stage.bootstrap,
        "describe", "--status",
    )  # fmt: skip
    leader = next(int(line.split()[1]) for line in output.splitlines() if "LeaderId" in line)
    victim = stage.cluster.nodes[leader - 1]
    stage.cluster.stop_node(victim)
    survivor = stage.cluster.nodes[leader % 3].address.ports["PLAINTEXT"]
    until("two brokers", _soon(lambda: probe.brokers(survivor) == 2))
    stage.cluster.start_node(victim)
    stage.cluster.wait_until_ready()


def _soon(condition: Callable[[], bool]) -> Callable[[], bool]:
    def attempt() -> bool:
        time.sleep(0.1)
        return condition()

    return attempt


def create(stage: Stage, replicas: int, partitions: int = 3) -> None:
    """Create the topic of this stage."""
    _create(stage, NewTopic(stage.topic(), partitions, replicas))


def _create(stage: Stage, topic: NewTopic) -> None:
    admin = AdminClient(config(stage))
    errors = answers(admin.create_topics([topic]))
    if any(errors):
        raise RuntimeError(f"{stage.topic()} was not created: {errors}")


def _send(stage: Stage, sender: object) -> None:
    for key, value in orders(6):
        sender.produce(stage.topic(), value, key)  # type: ignore[attr-defined]
    finish(sender)  # type: ignore[arg-type]
