from __future__ import annotations

import socket
import subprocess
import sys
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.broker import artifacts, probe
from tests.broker import kafka_cluster as kafka_nodes
from tests.broker.conftest import StartCluster
from tests.broker.kafka_cluster import BrokerError, Cluster, Node, free_ports
from tests.broker.replay.support.recording import fresh
from tests.broker.server_properties import PASSWORD, USER, Shape
from tests.waiting import child

pytestmark = [pytest.mark.broker, pytest.mark.xdist_group("broker")]

SECURE = Shape(sasl=True, tls=True)
PATIENCE_S = 90


def exchange(
    cluster: Cluster, topic: str, replicas: int = 1, **settings: Any
) -> list[bytes | None]:
    """Create a topic, produce three records and fetch them."""
    common = {"bootstrap.servers": cluster.bootstrap(), **named(settings)}
    admin = AdminClient(common)
    admin.create_topics([NewTopic(topic, 1, replicas)])[topic].result(PATIENCE_S)
    producer = Producer(common)
    for number in range(3):
        producer.produce(topic, b"value %d" % number)
    assert producer.flush(PATIENCE_S) == 0
    consumer = Consumer({**common, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    messages = consumer.consume(3, PATIENCE_S)
    consumer.close()
    return [message.value() for message in messages]


THREE_VALUES = [b"value 0", b"value 1", b"value 2"]


@pytest.mark.parametrize("version", artifacts.LINES)
def test_records_are_produced_and_fetched(kafka: StartCluster, version: str) -> None:
    cluster = kafka(Shape(version))
    assert cluster.version.startswith(version.removesuffix("x"))
    assert exchange(cluster, "one-node") == THREE_VALUES


@pytest.mark.parametrize("version", artifacts.LINES)
def test_three_nodes_form_a_cluster(version: str) -> None:
    with fresh(Shape(version, nodes=3)) as cluster:
        assert exchange(cluster, "three-nodes", replicas=3) == THREE_VALUES
        cluster.stop_node(cluster.nodes[2], kill=True)
        cluster.wait_until_ready()  # until the controller has fenced it
        assert exchange(cluster, "two-nodes", replicas=2) == THREE_VALUES


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_sasl_login(kafka: StartCluster, mechanism: str) -> None:
    settings = sasl(kafka(SECURE), mechanism)
    assert exchange(kafka(SECURE), mechanism.lower(), **settings) == THREE_VALUES


def test_sasl_refuses_a_wrong_password(kafka: StartCluster) -> None:
    errors: list[KafkaError] = []
    settings = {**sasl(kafka(SECURE), "PLAIN"), "sasl_password": "guessed"}
    wrong: dict[str, Any] = {**named(settings), "error_cb": errors.append}
    admin = AdminClient(wrong)
    for _ in range(100):
        admin.poll(0.1)
        if errors:
            break
    assert errors[0].code() == KafkaError._AUTHENTICATION


def test_tls_with_the_cluster_certificate(kafka: StartCluster) -> None:
    cluster = kafka(SECURE)
    settings: dict[str, Any] = {
        "bootstrap_servers": cluster.bootstrap("SSL"),
        "security_protocol": "SSL",
        "ssl_ca_location": str(cluster.certificate),
    }
    assert exchange(cluster, "tls", **settings) == THREE_VALUES


def test_a_stopped_node_can_be_restarted() -> None:
    with fresh(Shape()) as cluster:
        (node,) = cluster.nodes
        port = node.address.ports["PLAINTEXT"]
        cluster.stop_node(node)
        assert not probe.answers(port)
        cluster.start_node(node)
        cluster.wait_until_ready()
        assert probe.answers(port)
        folder = cluster.folder
    assert not probe.answers(port)
    assert not folder.exists()


def test_a_failed_start_shows_the_log() -> None:
    broken = Shape(properties=(("num.io.threads", "none"),))
    with pytest.raises(BrokerError, match=r"num\.io\.threads"), fresh(broken):
        pass


def test_a_port_taken_by_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        lost = [taken.getsockname()[1]]

        def ports(count: int) -> list[int]:
            return [*lost, *free_ports(count)][:count]

        monkeypatch.setattr(kafka_nodes, "free_ports", ports)
        starts = []
        start_node = Cluster.start_node

        def start(cluster: Cluster, node: Node) -> None:
            starts.append(node.address)
            lost.clear()
            start_node(cluster, node)

        monkeypatch.setattr(Cluster, "start_node", start)
        with fresh(Shape()) as cluster:
            assert exchange(cluster, "another-port") == THREE_VALUES
    assert len(starts) == 2


def test_a_late_node_is_reported_with_port_and_log() -> None:
    with fresh(Shape()) as cluster:
        (node,) = cluster.nodes
        cluster.stop_node(node)
        cluster.start_node(node)
        port = node.address.ports["PLAINTEXT"]
        with pytest.raises(BrokerError, match=f"(?s)port {port} did not answer in 0 s.*INFO"):
            cluster.wait_until_ready(patience_s=0)


def test_the_command_prints_the_address() -> None:
    fresh(Shape())
    with child(
        subprocess.Popen(
            [sys.executable, "-m", "tests.broker", "--sasl"], stdout=subprocess.PIPE, text=True
        )
    ) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(4)]
        port = int(lines[1].rpartition(":")[2])
        assert probe.answers(port)
        process.terminate()
        assert process.wait(PATIENCE_S) == 143
    assert lines[2].startswith("SASL_PLAINTEXT")
    assert PASSWORD in lines[3]
    assert not probe.answers(port)


def named(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings under librdkafka's names."""
    return {"log_level": 0, **{name.replace("_", "."): at for name, at in settings.items()}}


def sasl(cluster: Cluster, mechanism: str) -> dict[str, Any]:
    return {
        "bootstrap_servers": cluster.bootstrap("SASL_PLAINTEXT"),
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_username": USER,
        "sasl_password": PASSWORD,
    }
