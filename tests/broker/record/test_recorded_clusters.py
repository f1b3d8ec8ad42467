"""Recordings of real clients at real clusters: what they get, and what the file has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaConsumer, KafkaProducer

from cluster.client.auth import Security
from conform import conform
from dissector.public import Exchange, dissect
from record.public import Recorder
from tests.broker.conftest import StartCluster
from tests.broker.server_properties import PASSWORD, USER, Shape
from tests.waiting import PATIENCE_S
from tools.record.sniff import CaptureRefusedError, capture

pytestmark = pytest.mark.broker

SECURE = Shape(sasl=True, tls=True)
THREE = Shape(nodes=3)
RECORDS = 500


def produce_and_consume(bootstrap: str, topic: str, **settings: Any) -> list[bytes]:
    """Send records in several batches, and return what a group reads of them."""
    producer = KafkaProducer(bootstrap_servers=bootstrap, linger_ms=1, **settings)
    for number in range(RECORDS):
        producer.send(topic, b"value %d" % number, partition=0)
    producer.flush()
    producer.close()
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=f"{topic}-group",
        auto_offset_reset="earliest",
        consumer_timeout_ms=60_000,
        **settings,
    )
    found = [record.value for record, _ in zip(consumer, range(RECORDS), strict=False)]
    consumer.close()
    return found


def rows(exchanges: Iterator[Exchange]) -> Counter[tuple[Any, ...]]:
    """Return the answered exchanges, without times and ports."""
    return Counter(
        (
            *(each.api, each.api_version, each.correlation_id, each.broker),
            *(each.request_bytes, each.response_bytes, tuple(each.errors), tuple(each.topics)),
        )
        for each in exchanges
        if each.status == "answered"
    )


def test_a_cluster_of_three_is_recorded_as_it_is_captured(
    kafka: StartCluster, tmp_path: Path
) -> None:
    cluster = kafka(THREE)
    file, sniffed = tmp_path / "recorded.pcapng", tmp_path / "sniffed.pcap"
    ports = [int(each.rpartition(":")[2]) for each in cluster.bootstrap().split(",")]
    try:
        with (
            capture(sniffed, ports),
            Recorder(file, to=cluster.bootstrap().split(",")[0]) as recorder,
        ):
            values = produce_and_consume(recorder.bootstrap, "recorded-by-three")
    except CaptureRefusedError as refused:
        pytest.skip(str(refused))
    assert values == [b"value %d" % number for number in range(RECORDS)]
    assert recorder.counts.foreign == recorder.counts.unread == 0
    recorded, captured = rows(dissect(str(file))), rows(dissect(str(sniffed), ports=ports))
    brokers = {row[3] for row in recorded}
    assert len(brokers) > 1
    # The capture has the tests of the cluster's own clients, too.
    assert recorded <= captured
    assert sum(1 for _ in dissect(str(file))) == recorder.counts.requests
    assert conform(str(file)).passed


def test_a_node_that_restarts_in_mid_run_costs_no_record(
    kafka: StartCluster, tmp_path: Path
) -> None:
    cluster, file = kafka(THREE), tmp_path / "a.pcapng"
    topic = "recorded-restart"
    values = [b"value %d" % number for number in range(RECORDS)]
    # Each node leads a partition, so the client talks to all of them.
    led = NewTopic(topic, 3, replica_assignment=[[1, 2, 3], [2, 3, 1], [3, 1, 2]])
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap()})
    admin.create_topics([led])[topic].result(PATIENCE_S)
    with Recorder(file, to=cluster.bootstrap()) as recorder:
        producer = KafkaProducer(bootstrap_servers=recorder.bootstrap, linger_ms=1, acks="all")
        for number, value in enumerate(values):
            producer.send(topic, value, partition=number % 3)
            if number == RECORDS // 2:
                producer.flush()
                cluster.stop_node(cluster.nodes[2])
        cluster.start_node(cluster.nodes[2])
        cluster.wait_until_ready()
        producer.flush()
        producer.close()
        consumer = KafkaConsumer(
            topic,
            bootstrap_servers=recorder.bootstrap,
            auto_offset_reset="earliest",
            consumer_timeout_ms=120_000,
        )
        found = set[bytes]()
        while len(found) < RECORDS:
            found.add(next(consumer).value)
        consumer.close()
    assert found == set(values)
    assert recorder.counts.foreign == recorder.counts.unread == 0
    recorded = [each for each in dissect(str(file)) if each.status == "answered"]
    assert {"Produce", "Fetch", "Metadata"} <= {each.api for each in recorded}
    assert {each.broker for each in recorded} >= set(cluster.bootstrap().split(","))
    assert not any(each.problems for each in recorded)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", ""])
def test_logins_of_clients_pass_and_leave_no_secret(
    kafka: StartCluster, tmp_path: Path, mechanism: str
) -> None:
    """Without a mechanism `record` logs in itself, by TLS, and the client knows nothing of it."""
    cluster, file = kafka(SECURE), tmp_path / "a.pcapng"
    if mechanism:
        listener, security = "SASL_PLAINTEXT", Security()
        settings = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": mechanism}
        settings |= {"sasl_plain_username": USER, "sasl_plain_password": PASSWORD}
    else:
        listener, settings = "SASL_SSL", {}
        security = Security.read(
            mechanism="SCRAM-SHA-512",
            username=USER,
            authority_file=cluster.certificate,
            environment={"KAFKASHARK_PASSWORD": PASSWORD},
        )
    with Recorder(file, to=cluster.bootstrap(listener), security=security) as recorder:
        topic = f"recorded-{mechanism or 'by-us'}"
        values = produce_and_consume(recorder.bootstrap, topic, **settings)
    assert len(values) == RECORDS
    assert PASSWORD.encode() not in file.read_bytes()
    apis = {each.api for each in dissect(str(file))}
    assert {"Produce", "Fetch", "JoinGroup"} <= apis
    assert ("SaslAuthenticate" in apis) == bool(mechanism)
