"""TLS with key logs: versions, client certificates, resumption, KeyUpdate."""

from __future__ import annotations

import ssl
from contextlib import suppress
from pathlib import Path
from typing import Any

from kafka import KafkaProducer

from tests.broker.artifacts import key_log_agent
from tests.broker.server_properties import PASSWORD, STORE_PASSWORD, USER, Shape
from tools.record.java_tools import tool
from tools.record.scenario import PATIENCE_S, Stage, scenario
from tools.record.scenarios.broker_errors import SECURE_4
from tools.record.scenarios.kafka_python import send
from tools.record.scenarios.other_languages import play_go, play_node

ONE_CONTEXT = Shape("4.x", sasl=True, tls=True, properties=(("num.network.threads", "1"),))
"""Each network thread of a broker resumes only its own sessions."""

_ENCRYPTED = str(Path(__file__).parents[1] / "programs" / "Encrypted.java")


def key_log(stage: Stage) -> Path:
    """Return the path of the key log beside the capture."""
    return stage.folder / f"{stage.scenario}.keylog"


def _settings(stage: Stage, version: str) -> str:
    """Write a settings file for a Java client; return its name."""
    settings = {
        "bootstrap.servers": stage.cluster.bootstrap("SSL"),
        "security.protocol": "SSL",
        "client.id": f"java-{version}",
        "ssl.enabled.protocols": version,
        "ssl.protocol": version,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(stage.cluster.certificate),
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(stage.cluster.client_keystore),
        "ssl.keystore.password": STORE_PASSWORD,
        "ssl.key.password": STORE_PASSWORD,
    }
    path = stage.cluster.folder / f"{version}.properties"
    path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    return str(path)


def _play_java(stage: Stage, version: str) -> None:
    security = stage.cluster.folder / "java.security"
    security.write_text("jdk.tls.keyLimits=AES/GCM/NoPadding KeyUpdate 2^9\n")
    tool(
        stage,
        _ENCRYPTED,
        stage.topic(),
        _settings(stage, version),
        jvm_options=(
            f"-javaagent:{key_log_agent()}={key_log(stage)}",
            f"-Djava.security.properties={security}",
        ),
    )


@scenario(
    "kafka4-java-tls13",
    "TLS 1.3 with the Java agent's key log and a client certificate, KeyUpdate",
    client="java",
    cluster=SECURE_4,
    form="gz",
)
def java_tls13(stage: Stage) -> None:
    _play_java(stage, "TLSv1.3")


@scenario(
    "kafka4-java-tls12",
    "TLS 1.2 with the Java agent's key log and a client certificate",
    client="java",
    cluster=SECURE_4,
    form="gz",
)
def java_tls12(stage: Stage) -> None:
    _play_java(stage, "TLSv1.2")


@scenario(
    "kafka4-kafka-python-tls",
    "TLS 1.2 with AES-CBC and ChaCha20, and SASL_SSL over TLS 1.3, with key logs",
    client="kafka-python",
    cluster=SECURE_4,
    form="gz",
)
def kafka_python_tls(stage: Stage) -> None:
    for name in ("AES128-SHA256", "ECDHE-RSA-CHACHA20-POLY1305", ""):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(stage.cluster.certificate)
        context.keylog_filename = str(key_log(stage))
        if name:
            context.maximum_version = ssl.TLSVersion.TLSv1_2
            context.set_ciphers(name)
        protocol = "SSL" if name else "SASL_SSL"
        common = {
            "bootstrap_servers": stage.cluster.bootstrap(protocol).split(","),
            "security_protocol": protocol,
            "ssl_context": context,
            "client_id": f"kp-{name or 'sasl'}",
        }
        if not name:
            common |= {
                "sasl_mechanism": "SCRAM-SHA-256",
                "sasl_plain_username": USER,
                "sasl_plain_password": PASSWORD,
            }
        sender = KafkaProducer(**common)
        send(stage, sender, records=3)
        sender.close(PATIENCE_S)


@scenario(
    "kafka4-franz-go-tls12",
    "franz-go over TLS 1.2 with its key log: two producers",
    client="franz-go",
    cluster=SECURE_4,
    form="gz",
)
def franz_go_tls12(stage: Stage) -> None:
    bootstrap, certificate = stage.cluster.bootstrap("SSL"), str(stage.cluster.certificate)
    play_go("franz", bootstrap, stage.topic(), certificate, str(key_log(stage)), "1.2")


class ResumingSocket(ssl.SSLSocket):
    """Passes its session to the next connection of its context."""

    def recv(self, *arguments: Any) -> bytes:
        """Receive data; in TLS 1.3, tickets precede it."""
        data = super().recv(*arguments)
        self.context.last_session = self.session  # type: ignore[attr-defined]
        return data

    def close(self) -> None:
        """Send close_notify: otherwise the broker drops the session id."""
        with suppress(OSError, ValueError):
            self.unwrap()
        super().close()


class ResumingContext(ssl.SSLContext):
    """Resumes the session of its last connection."""

    sslsocket_class = ResumingSocket
    last_session: ssl.SSLSession | None = None

    def wrap_socket(self, *arguments: Any, **options: Any) -> ssl.SSLSocket:
        """Wrap a socket with the last session."""
        return super().wrap_socket(*arguments, **options, session=self.last_session)


@scenario(
    "kafka4-kafka-python-resumption",
    "Resumption, with key logs: in TLS 1.3, in TLS 1.2 by ticket and by session id",
    client="kafka-python",
    cluster=ONE_CONTEXT,
    form="gz",
)
def kafka_python_resumption(stage: Stage) -> None:
    for name, version, without in (
        ("tls13", ssl.TLSVersion.TLSv1_3, 0),
        ("ticket", ssl.TLSVersion.TLSv1_2, 0),
        ("id", ssl.TLSVersion.TLSv1_2, ssl.OP_NO_TICKET),
    ):
        context = ResumingContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(stage.cluster.certificate)
        context.keylog_filename = str(key_log(stage))
        context.minimum_version = context.maximum_version = version
        context.options |= without
        sender = KafkaProducer(
            bootstrap_servers=stage.cluster.bootstrap("SSL").split(","),
            security_protocol="SSL",
            ssl_context=context,
            client_id=f"kp-{name}",
        )
        send(stage, sender, records=2)
        sender.close(PATIENCE_S)


@scenario(
    "kafka4-sarama-tls",
    "sarama over TLS 1.3 with its key log: two producers",
    client="sarama",
    cluster=SECURE_4,
    form="gz",
)
def sarama_tls(stage: Stage) -> None:
    bootstrap, certificate = stage.cluster.bootstrap("SSL"), str(stage.cluster.certificate)
    play_go("sarama", bootstrap, stage.topic(), certificate, str(key_log(stage)))


@scenario(
    "kafka4-kafkajs-tls",
    "kafkajs over TLS 1.3 with the key log of Node",
    client="kafkajs",
    cluster=SECURE_4,
    form="gz",
)
def kafkajs_tls(stage: Stage) -> None:
    bootstrap, certificate = stage.cluster.bootstrap("SSL"), str(stage.cluster.certificate)
    play_node([f"--tls-keylog={key_log(stage)}"], bootstrap, stage.topic(), certificate)
