"""The server.properties of a node."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

USER = "alice"
PASSWORD = "secret-for-tests"
STORE_PASSWORD = "changeit"
SCRAM_MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")


@dataclass(frozen=True)
class Shape:
    """The kind of a cluster."""

    version: str = "4.x"
    nodes: int = 1
    sasl: bool = False
    """A second listener: SASL_PLAINTEXT with PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512."""
    tls: bool = False
    """Further listeners: SSL, with certificates made for it; with `sasl`, SASL_SSL too."""
    properties: tuple[tuple[str, str], ...] = ()
    """More broker settings; they win."""
    jvm_options: tuple[str, ...] = ()
    """More options of Java."""

    @property
    def listeners(self) -> tuple[str, ...]:
        """The client listeners; PLAINTEXT is always included."""
        both = ["SASL_SSL"] * (self.sasl and self.tls)
        return ("PLAINTEXT", *["SASL_PLAINTEXT"] * self.sasl, *["SSL"] * self.tls, *both)

    @property
    def all_listeners(self) -> tuple[str, ...]:
        """Listeners for clients, between brokers, and for controllers."""
        return (*self.listeners, "INTERNAL", "CONTROLLER")


@dataclass(frozen=True)
class Address:
    """Addresses of a node."""

    node_id: int
    ports: dict[str, int]
    """Port by listener name, those of `Shape.all_listeners`."""

    def at(self, listener: str) -> str:
        """Return host:port of a listener."""
        return f"127.0.0.1:{self.ports[listener]}"


def server_properties(
    shape: Shape, node: Address, peers: list[Address], data: Path, keystore: Path | None
) -> str:
    """Write the server.properties of one node of a cluster."""
    replicas = str(min(shape.nodes, 3))
    settings = {
        "process.roles": "broker,controller",
        "node.id": str(node.node_id),
        "listeners": _listeners(node, shape.all_listeners),
        "advertised.listeners": _listeners(node, (*shape.listeners, "INTERNAL")),
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,INTERNAL:PLAINTEXT,"
        "PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "INTERNAL",
        "controller.quorum.bootstrap.servers": ",".join(each.at("CONTROLLER") for each in peers),
        "log.dirs": f"{data / 'one'},{data / 'two'}",
        "metadata.log.dir": str(data / "one"),
        # Small and quick: a test's broker has few clients and two cores to share.
        "num.network.threads": "2",
        "num.io.threads": "2",
        "background.threads": "2",
        "num.recovery.threads.per.data.dir": "1",
        "log.cleaner.dedupe.buffer.size": "16777216",
        "offsets.topic.num.partitions": "3",
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.num.partitions": "3",
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.num.partitions": "3",
        "share.coordinator.state.topic.replication.factor": replicas,
        "share.coordinator.state.topic.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
        "default.replication.factor": replicas,
        "num.partitions": "2",
        "controlled.shutdown.enable": "true",
        "auto.create.topics.enable": "true",
        "delegation.token.secret.key": PASSWORD,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:admin",
        "allow.everyone.if.no.acl.found": "true",
        **(_sasl() if shape.sasl else {}),
        **(_tls(keystore) if keystore else {}),
        **dict(shape.properties),
    }
    if shape.version.startswith("3."):
        settings.setdefault("group.coordinator.rebalance.protocols", "classic,consumer")
    return "".join(f"{name}={value}\n" for name, value in settings.items())


def _listeners(node: Address, names: tuple[str, ...]) -> str:
    return ",".join(f"{name}://{node.at(name)}" for name in names)


_SASL_LISTENERS = ("listener.name.sasl_plaintext", "listener.name.sasl_ssl")


def _sasl() -> dict[str, str]:
    module = "org.apache.kafka.common.security"
    users = f'user_{USER}="{PASSWORD}" user_admin="{PASSWORD}"'
    scram = f"{module}.scram.ScramLoginModule required;"
    return {
        "sasl.enabled.mechanisms": ",".join(("PLAIN", *SCRAM_MECHANISMS)),
        **{
            f"{prefix}.plain.sasl.jaas.config": f"{module}.plain.PlainLoginModule required "
            f'username="admin" password="{PASSWORD}" {users};'
            for prefix in _SASL_LISTENERS
        },
        **{
            f"{prefix}.{each.lower()}.sasl.jaas.config": scram
            for prefix in _SASL_LISTENERS
            for each in SCRAM_MECHANISMS
        },
    }


def _tls(keystore: Path) -> dict[str, str]:
    return {
        "ssl.keystore.location": str(keystore),
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.password": STORE_PASSWORD,
        "ssl.key.password": STORE_PASSWORD,
        "ssl.truststore.location": str(keystore.with_name("trusted.pem")),
        "ssl.truststore.type": "PEM",
        "ssl.client.auth": "requested",
    }
