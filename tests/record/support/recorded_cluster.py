"""A scripted broker, a recorder in front of it, and what the recording says."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from cluster.client.loop_thread import LoopThread
from dissector.protocol.messages import Message
from dissector.public import Exchange, dissect
from record.public import Recorder
from tests.replay.support.scripted_broker import Answer, Scripted, scripted

ADVERTISED = "broker.example", 19092
"""The address of the second broker, to which nobody connects."""


class Recorded(NamedTuple):
    """A running recorder and the broker behind it."""

    recorder: Recorder
    broker: Scripted
    file: Path

    def exchanges(self) -> list[Exchange]:
        """Return what the recording has, after its end."""
        return list(dissect(str(self.file)))


@contextmanager
def broker_thread(
    answers: dict[str, Callable[[Message], Any]], tls: ssl.SSLContext | None = None
) -> Iterator[Scripted]:
    """Run a scripted broker in a thread; it advertises itself, and another one."""

    def metadata(_: Message) -> Answer:
        nodes = [{"node_id": 1, "host": "127.0.0.1", "port": broker.port}]
        nodes.append({"node_id": 2, "host": ADVERTISED[0], "port": ADVERTISED[1]})
        return {"brokers": nodes, "topics": [], "cluster_id": "c", "controller_id": 1}

    with LoopThread("broker") as loop:
        serving = scripted({"Metadata": metadata, **answers}, tls)
        broker = loop.run(serving.__aenter__())
        try:
            yield broker
        finally:
            loop.run(serving.__aexit__(None, None, None))


@contextmanager
def recorded(
    folder: Path, answers: dict[str, Callable[[Message], Any]], **options: Any
) -> Iterator[Recorded]:
    """Record the traffic with a scripted broker."""
    file = folder / "recording.pcapng"
    with (
        broker_thread(answers, options.pop("tls", None)) as broker,
        Recorder(file, to=f"127.0.0.1:{broker.port}", **options) as recorder,
    ):
        yield Recorded(recorder, broker, file)
