"""Scenarios of `tools.record`, recorded on clusters of these tests."""

from __future__ import annotations

import gc
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.broker import artifacts
from tests.broker.kafka import Cluster, running
from tests.broker.settings import Shape
from tools.record.scenario import Stage, all_scenarios
from tools.record.sniff import CaptureRefusedError, capture, wait_until_quiet

Play = Callable[[Stage], None]


def record(cluster: Cluster, name: str, folder: Path, play: Play | None = None) -> Path:
    """
    Record a play while a cluster has no other clients.

    Args:
        cluster: Plays along.
        name: Of the play; its topics and groups begin with it.
        folder: Gets the capture.
        play: What is played; the scenario of that name without.

    Returns:
        The capture.
    """
    if play is None:
        (play,) = (each.play for each in all_scenarios() if each.name == name)
    listeners = cluster.shape.listeners
    ports = [node.address.ports[each] for node in cluster.nodes for each in listeners]
    stage = Stage(name, cluster.bootstrap(), tuple(ports), folder, cluster)
    path = folder / f"{name}.pcap"
    wait_until_quiet(ports)
    try:
        with capture(path, ports):
            play(stage)
            gc.collect()  # clients that nobody holds close their connections
            wait_until_quiet(ports)
    except CaptureRefusedError as refused:
        pytest.skip(str(refused))
    return path


def fresh(shape: Shape) -> AbstractContextManager[Cluster]:
    """Start a cluster of the test's own."""
    try:
        artifacts.jars(shape.version)
    except artifacts.MissingError as missing:
        pytest.skip(str(missing))
    return running(shape)
