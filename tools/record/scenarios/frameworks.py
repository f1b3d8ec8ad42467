"""Kafka Streams and Kafka Connect, from the jars of the broker."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event

from tests.broker.kafka_cluster import free_ports, leashed
from tools.record.scenario import KAFKA_4, KAFKA_39, Stage, orders, scenario, until
from tools.record.scenarios.java_clients import program

_STREAMS = "Kafka Streams: two instances count words with exactly_once_v2"
_CONNECT = "Kafka Connect: two distributed workers, a source and a sink of files"
_LINES = 30
_PAUSE_S = 0.2
_FILE_STREAM = "org.apache.kafka.connect.file.FileStream"


@scenario("kafka4-streams", f"{_STREAMS}, in a classic group", client="java", cluster=KAFKA_4)
@scenario("kafka39-streams", f"{_STREAMS}, in a classic group", client="java", cluster=KAFKA_39)
def streams(stage: Stage) -> None:
    program(stage, "WordCount", stage.topic(), "classic", with_tools=True)


@scenario(
    "kafka4-streams-group",
    f"{_STREAMS}, in a streams group (KIP-1071)",
    client="java",
    cluster=KAFKA_4,
)
def streams_group(stage: Stage) -> None:
    program(stage, "WordCount", stage.topic(), "streams", with_tools=True)


@scenario("kafka4-connect", _CONNECT, client="java", cluster=KAFKA_4)
@scenario("kafka39-connect", _CONNECT, client="java", cluster=KAFKA_39)
def connect(stage: Stage) -> None:
    lines = "".join(f"{value.decode()}\n" for _, value in orders(_LINES))
    ports = free_ports(2)
    with TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        source, sink = folder / "source.txt", folder / "sink.txt"
        source.write_text(lines, encoding="utf-8")
        for port in ports:
            stack.enter_context(_worker(stage, folder, port))
        for port in ports:
            until("a worker", lambda port=port: _request_succeeds(port, "GET", "/connectors"))
        copies = (
            ("Source", {"file": str(source), "topic": stage.topic()}),
            ("Sink", {"file": str(sink), "topics": stage.topic()}),
        )
        for port, (kind, settings) in zip(ports, copies, strict=True):
            settings |= {"connector.class": f"{_FILE_STREAM}{kind}Connector", "tasks.max": "1"}
            where = f"/connectors/{stage.topic(kind)}/config"
            until("a connector", lambda at=(port, "PUT", where, settings): _request_succeeds(*at))
        until("the sink", lambda: _has(sink, lines))


@contextmanager
def _worker(stage: Stage, folder: Path, port: int) -> Iterator[None]:
    """Run a worker of Connect; on exit it leaves its group."""
    converter = "org.apache.kafka.connect.storage.StringConverter"
    settings = {
        "bootstrap.servers": stage.bootstrap,
        "client.id": f"connect-{port}",
        "group.id": stage.topic("workers"),
        "key.converter": converter,
        "value.converter": converter,
        "listeners": f"http://127.0.0.1:{port}",
        "offset.flush.interval.ms": 1000,
        "plugin.discovery": "service_load",
    }
    for kind, partitions in (("config", 1), ("offset", 2), ("status", 2)):
        settings[f"{kind}.storage.topic"] = stage.topic(kind)
        settings[f"{kind}.storage.replication.factor"] = 1
        if kind != "config":
            settings[f"{kind}.storage.partitions"] = partitions
    file = folder / f"{port}.properties"
    written = "".join(f"{name}={value}\n" for name, value in settings.items())
    file.write_text(written, encoding="utf-8")
    main = "org.apache.kafka.connect.cli.ConnectDistributed"
    command = leashed(stage.cluster.jars.tools.java(main, str(file), heap_mb=256))
    with (folder / f"{port}.log").open("wb") as log:
        worker = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True
        )
    try:
        yield
    finally:
        worker.send_signal(signal.SIGTERM)
        worker.communicate()


def _request_succeeds(port: int, method: str, path: str, settings: object = None) -> bool:
    """Return whether a worker executes a request; wait a moment if not."""
    body = json.dumps(settings).encode() if settings else None
    with closing(HTTPConnection("127.0.0.1", port, timeout=30)) as worker:
        try:
            worker.request(method, path, body, {"Content-Type": "application/json"})
            if worker.getresponse().status < 300:
                return True
        except OSError:
            pass
    Event().wait(_PAUSE_S)
    return False


def _has(sink: Path, lines: str) -> bool:
    """Return whether all lines have arrived; wait a moment if not."""
    came = sink.read_text(encoding="utf-8") if sink.exists() else ""
    return sorted(came.split("\n")) == sorted(lines.split("\n")) or Event().wait(_PAUSE_S)
