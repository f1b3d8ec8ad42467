"""Scenarios of the corpus run against their own captures."""

from __future__ import annotations

import json
import re
import ssl
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    load_pem_private_key,
)
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates
from cryptography.x509 import load_pem_x509_certificate

from dissector import open_capture
from serve.public import Cassette
from serve.server.serve_options import ServeOptions
from tests.broker.artifacts import Jars, jars
from tests.broker.kafka_cluster import Cluster
from tests.broker.server_properties import PASSWORD, STORE_PASSWORD
from tests.replay.support.replay_captures import SHIPPED
from tools.record.scenario import Mock, Scenario, Stage, all_scenarios

CERTIFICATE = Path(__file__).parents[2] / "cluster/loopback.pem"
"""Of 127.0.0.1, with its key."""

ENCRYPTED = re.compile(r"tls|resumption")
"""In the names of scenarios whose clients use TLS."""

FILES = {each["name"]: each["file"] for each in json.loads((SHIPPED / "manifest.json").read_text())}


class ServedCluster:
    """The interface of clusters for scenarios, for a served capture."""

    def __init__(self, bootstrap: str, version: str, folder: Path, logs: Path) -> None:
        self._bootstrap = bootstrap
        self._version = version
        self.folder = folder
        self.nodes = [
            SimpleNamespace(
                folder=logs.parent,
                address=SimpleNamespace(ports={"PLAINTEXT": int(each.rpartition(":")[2])}),
            )
            for each in bootstrap.split(",")
        ]

    @property
    def certificate(self) -> Path:
        """The certificate of the listeners."""
        return CERTIFICATE

    @property
    def client_keystore(self) -> Path:
        """The same certificate with its key, for Java clients."""
        pem, path = CERTIFICATE.read_bytes(), self.folder / "client.p12"
        key, certificate = load_pem_private_key(pem, None), load_pem_x509_certificate(pem)
        assert isinstance(key, RSAPrivateKey)
        secret = BestAvailableEncryption(STORE_PASSWORD.encode())
        path.write_bytes(serialize_key_and_certificates(b"own", key, certificate, None, secret))
        return path

    @property
    def jars(self) -> Jars:
        """The classes of Java clients."""
        return jars(self._version)

    def bootstrap(self, *_: Any) -> str:
        return self._bootstrap

    def stop_node(self, node: object) -> None:
        """Do nothing: what clients got when a broker stopped is in the capture."""

    def start_node(self, node: object) -> None:
        """Do nothing, as above."""

    def wait_until_ready(self) -> None:
        """Do nothing, as above."""


def scenario(name: str) -> Scenario:
    return next(each for each in all_scenarios() if each.name == name)


def cassette(name: str, **settings: Any) -> Cassette:
    """Return the cassette of a scenario; clients see their own produced records."""
    keylog = SHIPPED / f"{name}.keylog"
    tls = None
    if ENCRYPTED.search(name):
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(CERTIFICATE)
        tls.load_verify_locations(CERTIFICATE)
        tls.verify_mode = ssl.CERT_OPTIONAL
        tls.set_ciphers("DEFAULT")  # adds RSA key exchange, disabled in Python
    return Cassette(
        SHIPPED / FILES[name],
        keylogs=[keylog] if keylog.exists() else [],
        follows_producers=True,
        options=ServeOptions(tls=tls, password=PASSWORD),
        **settings,
    )


def play(name: str, bootstrap: str, folder: Path) -> None:
    """Run a scenario."""
    played = scenario(name)
    kafka = None
    if not isinstance(played.cluster, Mock):
        version, logs = played.cluster.version, _log_folder(SHIPPED / FILES[name])
        kafka = cast("Cluster", ServedCluster(bootstrap, version, folder, logs))
    played.play(Stage(name, bootstrap, (), folder, kafka))


def _log_folder(capture: Path) -> Path:
    """Return the log folder of the captured broker, if the capture has it."""
    for each in open_capture(capture):
        if each.api == "DescribeLogDirs" and each.response is not None:
            return Path(each.response.body.results[0].log_dir).parent
    return Path("unknown/data")
