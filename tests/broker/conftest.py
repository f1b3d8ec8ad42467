"""Clusters for tests: started on first use, shared, stopped at the end."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest

from tests.broker import artifacts
from tests.broker.kafka_cluster import Cluster, running
from tests.broker.server_properties import Shape

StartCluster = Callable[[Shape], Cluster]


@pytest.fixture(scope="session")
def kafka() -> Iterator[StartCluster]:
    """Start a cluster of this shape, or return the running one."""
    with contextlib.ExitStack() as stack:
        started: dict[Shape, Cluster] = {}

        def start(shape: Shape) -> Cluster:
            if shape not in started:
                try:
                    started[shape] = stack.enter_context(running(shape))
                except artifacts.MissingError as missing:
                    pytest.skip(str(missing))
            return started[shape]

        yield start
