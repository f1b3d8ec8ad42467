"""Clusters for tests: started on first use, shared, stopped at the end."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest

from tests.broker import artifacts
from tests.broker.kafka_cluster import Cluster, running
from tests.broker.server_properties import Shape

StartCluster = Callable[[Shape], Cluster]

MOST_NODES = 6
"""Nodes that run at once: each takes 0.4 GB, and a machine without memory ends some of them."""


class SharedClusters:
    """Running clusters, the one that was used last at the end."""

    def __init__(self) -> None:
        self._running: dict[Shape, tuple[Cluster, contextlib.ExitStack]] = {}

    def start(self, shape: Shape) -> Cluster:
        """Start a cluster of this shape, or return the running one."""
        if shape in self._running and self._running[shape][0].ended_nodes():
            self.stop(shape)
        if shape in self._running:
            self._running[shape] = self._running.pop(shape)
            return self._running[shape][0]
        while self._running and self._nodes() + shape.nodes > MOST_NODES:
            self.stop(next(iter(self._running)))
        with contextlib.ExitStack() as stack:
            try:
                cluster = stack.enter_context(running(shape))
            except artifacts.MissingError as missing:
                pytest.skip(str(missing))
            self._running[shape] = cluster, stack.pop_all()
        return cluster

    def _nodes(self) -> int:
        return sum(shape.nodes for shape in self._running)

    def stop(self, shape: Shape) -> None:
        """Stop a cluster."""
        self._running.pop(shape)[1].close()

    def stop_all(self) -> None:
        """Stop all clusters."""
        for shape in list(self._running):
            self.stop(shape)


@pytest.fixture(scope="session")
def kafka() -> Iterator[StartCluster]:
    """Start a cluster of this shape, or return the running one."""
    clusters = SharedClusters()
    try:
        yield clusters.start
    finally:
        clusters.stop_all()
