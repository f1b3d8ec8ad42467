"""Scenarios and their registry."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

from tests.broker.kafka_cluster import Cluster
from tests.broker.server_properties import Shape

Form = Literal["pcap", "nanosecond pcap", "pcapng", "gz"]
T = TypeVar("T")

PATIENCE_S = 90.0
"""Timeout for work that takes a second on an idle machine, also sufficient on a slow, busy one."""

KAFKA_4 = Shape("4.x")
KAFKA_39 = Shape("3.9.x")


@dataclass(frozen=True)
class Mock:
    """librdkafka's mock cluster, in this process."""

    nodes: int = 1


@dataclass(frozen=True)
class Stage:
    """The brokers of a scenario."""

    scenario: str
    bootstrap: str
    """Comma-separated host:port."""
    ports: tuple[int, ...]
    """Ports to capture."""
    folder: Path
    """Folder of the capture and its companion files, such as a key log."""

    kafka: Cluster | None = None
    """The running cluster; None for the mock."""

    @property
    def cluster(self) -> Cluster:
        """The running cluster of Apache Kafka."""
        assert self.kafka is not None, f"{self.scenario} needs Apache Kafka"
        return self.kafka

    def topic(self, name: str = "orders") -> str:
        """Return the name of a topic of this scenario; scenarios share brokers."""
        return f"{self.scenario}.{name}"


@dataclass(frozen=True)
class Scenario:
    """A short session of one client, and its recording."""

    name: str
    shows: str
    client: str
    cluster: Mock | Shape
    play: Callable[[Stage], None]
    form: Form = "pcap"
    inside: bool = False
    """Also capture traffic among brokers and controllers."""


_ALL: dict[str, Scenario] = {}


def scenario(
    name: str,
    shows: str,
    *,
    client: str,
    cluster: Mock | Shape,
    form: Form = "pcap",
    inside: bool = False,
) -> Callable[[Callable[[Stage], None]], Callable[[Stage], None]]:
    """Register the decorated function as a scenario."""

    def register(play: Callable[[Stage], None]) -> Callable[[Stage], None]:
        if name in _ALL:
            raise ValueError(f"two scenarios are called {name}")
        _ALL[name] = Scenario(name, shows, client, cluster, play, form, inside)
        return play

    return register


def all_scenarios() -> list[Scenario]:
    """Return all scenarios, grouped by cluster, so that each cluster starts once."""
    from tools.record import scenarios

    scenarios.load()
    clusters = list(dict.fromkeys(each.cluster for each in _ALL.values()))
    return sorted(_ALL.values(), key=lambda each: clusters.index(each.cluster))


def until(what: str, attempt: Callable[[], T | None], patience_s: float = PATIENCE_S) -> T:
    """
    Call `attempt`, which waits a moment itself, until its result is true.

    Raises:
        TimeoutError: The time is up; `what` names the awaited condition.
    """
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        if result := attempt():
            return result
    raise TimeoutError(f"waited {patience_s:.0f} s for {what}")


def orders(count: int, first: int = 0) -> Iterator[tuple[bytes, bytes]]:
    """Made-up keys and values: small JSON documents that compress well."""
    items = ("lamp", "chair", "table", "clock", "mirror")
    for number in range(first, first + count):
        item = items[number % len(items)]
        value = f'{{"order": {number}, "item": "{item}", "quantity": {number % 7 + 1}}}'
        yield f"customer-{number % 5}".encode(), value.encode()
