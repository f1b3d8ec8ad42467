"""Scenarios of `tools.record`, recorded on clusters of these tests."""

from __future__ import annotations

import gc
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.broker import artifacts
from tests.broker.kafka_cluster import Cluster, running
from tests.broker.server_properties import Shape
from tools.record.scenario import Stage, all_scenarios
from tools.record.sniff import CaptureRefusedError, capture, wait_until_quiet

Play = Callable[[Stage], None]

_PATIENCE_S = 30.0


def record(cluster: Cluster, name: str, folder: Path, play: Play | None = None) -> Path:
    """
    Record a scenario while a cluster has no other clients.

    Args:
        cluster: Cluster of the scenario.
        name: Name of the scenario, and prefix of its topics and groups.
        folder: Gets the capture.
        play: The function to record; by default the scenario of that name.

    Returns:
        The capture.
    """
    known = {each.name: each for each in all_scenarios()}
    outside = _ports(cluster, cluster.shape.listeners)
    is_inside = name in known and known[name].inside
    ports = _ports(cluster, cluster.shape.all_listeners) if is_inside else outside
    stage = Stage(name, cluster.bootstrap(), ports, folder, cluster)
    path = folder / f"{name}.pcap"
    # An open connection of an earlier scenario would begin midway in the capture.
    wait_until_quiet(outside, _PATIENCE_S)
    try:
        with capture(path, ports):
            (play or known[name].play)(stage)
            gc.collect()  # unreferenced clients close their connections
            wait_until_quiet(outside)
    except CaptureRefusedError as refused:
        pytest.skip(str(refused))
    return path


def _ports(cluster: Cluster, listeners: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(node.address.ports[each] for node in cluster.nodes for each in listeners)


def fresh(shape: Shape) -> AbstractContextManager[Cluster]:
    """Start a cluster for one test."""
    try:
        artifacts.jars(shape.version)
    except artifacts.MissingError as missing:
        pytest.skip(str(missing))
    return running(shape)
