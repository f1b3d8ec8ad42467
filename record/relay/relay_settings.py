"""What a relay is asked to do, and what it counts."""

from __future__ import annotations

import ssl
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from cluster.client.auth import Security
from cluster.client.listener import log_warning
from dissector.filter import Filter
from serve.faults.fault import Fault

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class RelaySettings:
    """
    What a relay is asked to do.

    Attributes:
        targets: Addresses of the cluster, `host:port`.
        security: Encryption and login at the cluster, and the hosts to which connections may go.
        host: Host of the listeners.
        port: Port of the first listener; the others use the next ports. 0 selects free ports.
        tls: TLS context of the listeners.
        faults: Faults to inject.
        chosen: A filter for the exchanges to record; None for all.
        timeout_s: Timeout for connecting and logging in to a broker.
        max_brokers: Limit of listeners: a cluster may name any number of brokers.
        warn: Called with messages.
    """

    targets: Sequence[str]
    security: Security = Security()  # noqa: RUF009 (frozen)
    host: str = LOOPBACK
    port: int = 0
    tls: ssl.SSLContext | None = field(default=None, repr=False)
    faults: Sequence[Fault] = ()
    chosen: Filter | None = None
    timeout_s: float = 10.0
    max_brokers: int = 1_000
    warn: Callable[[str], None] = field(default=log_warning, repr=False, compare=False)


@dataclass(slots=True)
class RelayCounts:
    """
    What a relay has seen.

    Attributes:
        connections: Connections of clients.
        requests: Requests of Kafka.
        foreign: Connections that are no Kafka.
        failed: Address of a broker -> connections that it did not take.
        faults: Text of a fault -> how often it was injected.
        unread: Responses with addresses that could not be read, and so were not changed.
    """

    connections: int = 0
    requests: int = 0
    foreign: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    unread: int = 0
