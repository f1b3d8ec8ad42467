"""
Sweep of requests from controllers to brokers before KRaft.

LeaderAndIsr, StopReplica, UpdateMetadata and ControlledShutdown are answered only by clusters with
ZooKeeper, which Kafka 3.9 is the last release to support.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

from tests.broker.artifacts import Jars
from tests.broker.kafka_cluster import Node
from tools.record.scenario import Stage
from tools.record.sweep.client import SweepClient, patiently
from tools.record.sweep.data_sweep import METADATA

LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA, CONTROLLED_SHUTDOWN = 4, 5, 6, 7
_TOPIC, _TOPIC_ID = "sweep.zookeeper", UUID("5eeb5eeb-0000-4000-8000-000000000039")
_STOP_S = 10

# Kills a command when standard input closes, which happens at any end of this process.
_LEASH = '"$@" </dev/null & read -r _; kill -9 $!'


@contextlib.contextmanager
def with_zookeeper(stage: Stage) -> Iterator[str]:
    """Restart the stage's node with ZooKeeper; return its address."""
    node = stage.cluster.nodes[0]
    stage.cluster.stop_node(node)
    port = node.address.ports["CONTROLLER"]  # free now
    with _zookeeper(stage.cluster.jars, node.folder / "zookeeper", port):
        (node.folder / "server.properties").write_text(_properties(node, port))
        stage.cluster.start_node(node)
        try:
            yield node.address.at("PLAINTEXT")
        finally:
            stage.cluster.stop_node(node, kill=True)


@contextlib.contextmanager
def _zookeeper(jars: Jars, folder: Path, port: int) -> Iterator[None]:
    folder.mkdir()
    settings = {
        "dataDir": str(folder / "data"),
        "clientPort": str(port),
        "clientPortAddress": "127.0.0.1",
        "admin.enableServer": "false",
    }
    config = folder / "zookeeper.properties"
    config.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    main = "org.apache.zookeeper.server.ZooKeeperServerMain"
    command = jars.java(main, str(config), heap_mb=128)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            ["sh", "-c", _LEASH, "sh", *command],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=folder,
        )
    try:
        yield
    finally:
        process.communicate(timeout=_STOP_S)


def _properties(node: Node, zookeeper_port: int) -> str:
    address = f"PLAINTEXT://{node.address.at('PLAINTEXT')}"
    settings = {
        "broker.id": str(node.address.node_id),
        "zookeeper.connect": f"127.0.0.1:{zookeeper_port}",
        "zookeeper.connection.timeout.ms": "30000",
        "listeners": address,
        "advertised.listeners": address,
        "log.dirs": str(node.folder / "zookeeper-logs"),
        "offsets.topic.replication.factor": "1",
        "num.network.threads": "2",
        "num.io.threads": "2",
        "log.cleaner.dedupe.buffer.size": "16777216",
    }
    return "".join(f"{name}={value}\n" for name, value in settings.items())


def speaking(address: str) -> SweepClient:
    """Return a client, once the broker is available and leads the cluster."""

    def ready() -> SweepClient | None:
        try:
            client = SweepClient(address)
        except (OSError, AssertionError):
            return None
        body = client.newest(METADATA, topics=[])
        if body is not None and body.controller_id >= 0:
            return client
        client.close()
        return None

    return patiently("a broker with ZooKeeper", ready)


def zookeeper(client: SweepClient, node: Node) -> None:
    """Send all versions of a controller's requests to a broker, and of ControlledShutdown."""
    me = node.address.node_id
    controller = {"controller_id": me, "controller_epoch": 1}
    for version in client.versions(LEADER_AND_ISR):
        state = _partition(version, me)
        live = {"broker_id": me, "host_name": "127.0.0.1", "port": 9}
        client.request(
            LEADER_AND_ISR,
            version,
            **controller,
            ungrouped_partition_states=[{"topic_name": _TOPIC, **state, "is_new": True}],
            topic_states=[
                {"topic_name": _TOPIC, "topic_id": _TOPIC_ID, "partition_states": [state]}
            ],
            live_leaders=[live],
        )
    _update_metadata(client, node, controller)
    for version in client.versions(STOP_REPLICA):
        partition = {"partition_index": 0, "leader_epoch": 100, "delete_partition": False}
        client.request(
            STOP_REPLICA,
            version,
            **controller,
            ungrouped_partitions=[{"topic_name": _TOPIC, "partition_index": 0}],
            topics=[{"name": _TOPIC, "partition_indexes": [0]}],
            topic_states=[{"topic_name": _TOPIC, "partition_states": [partition]}],
        )
    client.every(CONTROLLED_SHUTDOWN, broker_id=me, broker_epoch=-1)


def _partition(version: int, me: int) -> dict[str, Any]:
    """Describe partition 0; its leader epoch rises with the version."""
    return {
        "partition_index": 0,
        "controller_epoch": 1,
        "leader": me,
        "leader_epoch": version,
        "isr": [me],
        "replicas": [me],
    }


def _update_metadata(client: SweepClient, node: Node, controller: dict[str, Any]) -> None:
    me, port = node.address.node_id, node.address.ports["PLAINTEXT"]
    endpoint = {"host": "127.0.0.1", "port": port, "listener": "PLAINTEXT"}
    broker = {"id": me, "v0_host": "127.0.0.1", "v0_port": port}
    for version in client.versions(UPDATE_METADATA):
        state = _partition(version, me)
        client.request(
            UPDATE_METADATA,
            version,
            **controller,
            ungrouped_partition_states=[{"topic_name": _TOPIC, **state}],
            topic_states=[
                {"topic_name": _TOPIC, "topic_id": _TOPIC_ID, "partition_states": [state]}
            ],
            live_brokers=[{**broker, "endpoints": [endpoint]}],
        )
