"""
Clusters of Apache Kafka: formatted, started, awaited, stopped, cleaned up.

A node is one Java process in KRaft combined mode on the loopback interface. It is bound to
a pipe of this process: when this process ends, in any way, the node does too.
"""

from __future__ import annotations

import atexit
import base64
import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.broker import artifacts, probe
from tests.broker.server_properties import (
    PASSWORD,
    SCRAM_MECHANISMS,
    STORE_PASSWORD,
    USER,
    Address,
    Shape,
    server_properties,
)

START_PATIENCE_S = 240.0
START_ATTEMPTS = 3
STOP_PATIENCE_S = 20.0

# Runs a command until it ends, SIGTERM comes, or standard input closes.
_LEASH_SCRIPT = """
exec 3<&0
"$@" </dev/null 3<&- & node=$!
(cat <&3; kill -9 $node) >/dev/null 2>&1 & leash=$!
trap 'kill $node' TERM
wait $node; wait $node; code=$?
kill $leash 2>/dev/null
exit $code
"""


def leashed(command: list[str]) -> list[str]:
    """
    Return the command that runs another one until this process ends.

    It must be started with `stdin=subprocess.PIPE`.
    """
    return ["sh", "-c", _LEASH_SCRIPT, "sh", *command]


class BrokerError(Exception):
    """A node did not start or ended by itself; the message ends with the end of its log."""


@dataclass
class Node:
    """One broker and controller."""

    address: Address
    folder: Path
    process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        """Output of the node."""
        return self.folder / "node.log"

    def log_end(self, lines: int = 40) -> str:
        """Return the end of the log."""
        text = self.log.read_text(errors="replace") if self.log.exists() else "(no log)"
        return "\n".join(text.splitlines()[-lines:])


@dataclass
class Cluster:
    """A running cluster; clients need `bootstrap()`."""

    shape: Shape
    jars: artifacts.Jars
    folder: Path
    nodes: list[Node] = field(default_factory=list)

    @property
    def version(self) -> str:
        """The running release, such as 4.3.1."""
        return self.jars.version

    @property
    def certificate(self) -> Path:
        """The PEM certificate that clients of the SSL listener must trust."""
        return self.folder / "broker.pem"

    @property
    def client_keystore(self) -> Path:
        """The key and certificate of a client that the SSL listener trusts."""
        return self.folder / "client.p12"

    def bootstrap(self, listener: str = "PLAINTEXT") -> str:
        """Return the addresses of one listener of all nodes, comma-separated."""
        return ",".join(node.address.at(listener) for node in self.nodes)

    def start_node(self, node: Node) -> None:
        """Start a node; `wait_until_ready` waits until it serves."""
        java, *words = self.jars.java(
            "kafka.Kafka", str(node.folder / "server.properties"), heap_mb=_heap_mb(self.shape)
        )
        command = [java, *self.shape.jvm_options, *words]
        with node.log.open("ab") as log:
            node.process = subprocess.Popen(
                leashed(command),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=node.folder,
                start_new_session=True,
            )

    def stop_node(self, node: Node, kill: bool = False) -> None:
        """Stop a node, orderly or, with `kill`, immediately; wait for its end."""
        process, node.process = node.process, None
        if process is None:
            return
        if not kill:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(STOP_PATIENCE_S)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert process.stdin is not None
        process.stdin.close()

    def ended_nodes(self) -> list[Node]:
        """Return the nodes that ended by themselves."""
        running = ((node, node.process) for node in self.nodes)
        return [node for node, each in running if each is not None and each.poll() is not None]

    def wait_until_ready(self, patience_s: float = START_PATIENCE_S) -> None:
        """
        Wait until every started node answers ApiVersions and lists exactly the started nodes.

        Raises:
            BrokerError: One ended, or did not answer in time.
        """
        deadline = time.monotonic() + patience_s
        started = [node for node in self.nodes if node.process is not None]
        for node in started:
            port = node.address.ports["PLAINTEXT"]
            while not (probe.answers(port) and probe.brokers(port) == len(started)):
                # Without another node, none answers for all.
                for each in self.ended_nodes():
                    raise self._failure(each, "ended")
                if time.monotonic() > deadline:
                    raise self._failure(node, f"did not answer in {patience_s:.0f} s")
                time.sleep(0.1)

    def _failure(self, node: Node, why: str) -> BrokerError:
        return BrokerError(
            f"node {node.address.node_id} of Kafka {self.version} on port "
            f"{node.address.ports['PLAINTEXT']} {why}; its log ends:\n{node.log_end()}"
        )

    def stop(self) -> None:
        """Stop all nodes and remove their files; safe to call twice."""
        for node in self.nodes:
            if node.process is not None:
                node.process.terminate()
        for node in self.nodes:
            self.stop_node(node)
        shutil.rmtree(self.folder, ignore_errors=True)


@contextlib.contextmanager
def running(shape: Shape = Shape()) -> Iterator[Cluster]:  # noqa: B008 (frozen)
    """
    Start a cluster, ready to use, and stop it when the block ends.

    Raises:
        MissingError: Java, Maven or the artifacts are missing.
        BrokerError: It did not start; the message ends with its log.
    """
    cluster = _started(shape, artifacts.jars(shape.version))
    try:
        yield cluster
    finally:
        cluster.stop()
        atexit.unregister(cluster.stop)


def _started(shape: Shape, jars: artifacts.Jars) -> Cluster:
    """
    Start a cluster; try again where that may help.

    Another process may take a port first, and a machine without memory ends a node.
    """
    for attempt in range(1, START_ATTEMPTS + 1):
        cluster = Cluster(shape, jars, Path(tempfile.mkdtemp(prefix="kafkashark-broker-")))
        atexit.register(cluster.stop)
        try:
            _prepare(cluster)
            for node in cluster.nodes:
                cluster.start_node(node)
            cluster.wait_until_ready()
            return cluster
        except BaseException as error:
            cluster.stop()
            atexit.unregister(cluster.stop)
            is_lasting = not isinstance(error, BrokerError) or "ConfigException" in str(error)
            if is_lasting or attempt == START_ATTEMPTS:
                raise
            print(f"start {attempt} of {START_ATTEMPTS} failed: {error}", file=sys.stderr)
    raise AssertionError("unreachable")


def _prepare(cluster: Cluster) -> None:
    shape, names = cluster.shape, cluster.shape.all_listeners
    ports = iter(free_ports(shape.nodes * len(names)))
    addresses = [
        Address(node_id, {name: next(ports) for name in names})
        for node_id in range(1, shape.nodes + 1)
    ]
    keystore = _keystore(cluster) if shape.tls else None
    cluster_id = _kafka_uuid()
    directories = {each.node_id: _kafka_uuid() for each in addresses}
    voters = ",".join(
        f"{each.node_id}@{each.at('CONTROLLER')}:{directories[each.node_id]}" for each in addresses
    )
    for address in addresses:
        node = Node(address, cluster.folder / f"node-{address.node_id}")
        node.folder.mkdir()
        cluster.nodes.append(node)
        properties = server_properties(shape, address, addresses, node.folder / "data", keystore)
        (node.folder / "server.properties").write_text(properties)
        quorum = ["--standalone"] if shape.nodes == 1 else ["--initial-controllers", voters]
        users = [
            part
            for mechanism in SCRAM_MECHANISMS * shape.sasl
            for part in ("--add-scram", f"{mechanism}=[name={USER},password={PASSWORD}]")
        ]
        config = ["--config", str(node.folder / "server.properties")]
        _format(cluster, [*config, "--cluster-id", cluster_id, *quorum, *users])


def _format(cluster: Cluster, arguments: list[str]) -> None:
    command = cluster.jars.java("kafka.tools.StorageTool", "format", *arguments, heap_mb=256)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BrokerError(f"Kafka {cluster.version} can not format: {done.stdout}{done.stderr}")


def _keystore(cluster: Cluster) -> Path:
    """Make keys with self-signed certificates: the broker's for 127.0.0.1, and a client's."""
    keystore = cluster.folder / "broker.p12"
    _make_key(keystore, cluster.certificate, "CN=127.0.0.1", "-ext", "san=ip:127.0.0.1")
    trusted = keystore.with_name("trusted.pem")
    _make_key(cluster.client_keystore, trusted, "CN=orders-service,O=Orders")
    return keystore


def _make_key(keystore: Path, certificate: Path, subject: str, *more: str) -> None:
    store = ["-keystore", str(keystore), "-storepass", STORE_PASSWORD, "-alias", "own"]
    key = ["-genkeypair", "-storetype", "PKCS12", "-keyalg", "RSA", "-keysize", "2048"]
    about = ["-dname", subject, "-validity", "3650", *more]
    export = ["-exportcert", "-rfc", "-file", str(certificate)]
    for arguments in ([*key, *about, *store], [*export, *store]):
        subprocess.run(["keytool", *arguments], check=True, capture_output=True)


def _heap_mb(shape: Shape) -> int:
    return 512 if shape.nodes == 1 else 320


def _kafka_uuid() -> str:
    """Make an id in Kafka's form: 22 characters, without a leading dash."""
    first, *rest = uuid.uuid4().bytes
    return base64.urlsafe_b64encode(bytes([first & 0x7F, *rest]))[:22].decode()


def free_ports(count: int) -> list[int]:
    """Find free ports below the ephemeral range, so that none is taken meanwhile."""
    with contextlib.ExitStack() as held:
        ports: list[int] = []
        for port in random.sample(range(20_000, 32_000), 2_000):
            probe_socket = held.enter_context(socket.socket())
            with contextlib.suppress(OSError):
                probe_socket.bind(("127.0.0.1", port))
                ports.append(port)
            if len(ports) == count:
                return ports
    raise OSError(f"no {count} free ports")
