"""
Phases in which requests took long, and whose time that was: the network's, or the broker's.

By the columns `network_ms` and `server_ms` of `pairs`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dissector.engine.tables.exchange_table import NONE, Exchanges
from timeline.connections.logged_waits import WAIT_BY_DESIGN
from timeline.events.event import Event
from timeline.events.observed_exchange import ObservedExchange
from timeline.trackers.throttling import WaitRuns, WaitWords
from timeline.trackers.tracker import Tracker

_LEAST_MS = 500
_NS_PER_MS = 1_000_000

_BROKER = WaitWords("slow", "broker", "was slow with")
_NETWORK = WaitWords("slow", "network", "was behind a slow network with")


class SlowPhases(Tracker):
    """Follows requests of which a part of the latency was long; each part has its phases."""

    kind: ClassVar[str] = "connection"
    slow_ns: ClassVar[int] = _LEAST_MS * _NS_PER_MS

    def __init__(self) -> None:
        self._network = WaitRuns(self, _NETWORK)
        self._broker = WaitRuns(self, _BROKER)

    def observe(self, observed: ObservedExchange) -> Iterator[Event]:
        """Process a slow exchange."""
        exchange = observed.exchange
        network_ms, server_ms = exchange.network_ms, exchange.server_ms
        if network_ms is None or server_ms is None:
            return
        if network_ms >= _LEAST_MS:
            yield from self._network.add(observed, network_ms)
        if server_ms >= _LEAST_MS and observed.api_key not in WAIT_BY_DESIGN:
            yield from self._broker.add(observed, server_ms)

    def open_since_ns(self) -> int | None:
        """Return the begin of the oldest phase."""
        begins = (self._network.open_since_ns(), self._broker.open_since_ns())
        return min((each for each in begins if each is not None), default=None)

    def finish(self, now_ns: int) -> Iterator[Event]:
        """Report the phases open at the end of the capture."""
        yield from self._network.finish()
        yield from self._broker.finish()


def slow_rows(table: Exchanges, least_ns: int) -> NDArray[np.bool_]:
    """Return the exchanges of which a part of the latency took so long, but not by design."""
    server_ns, request, response = table.server_ns, table.request, table.response
    is_known = (server_ns != NONE) & (request.packet != NONE) & (response.packet != NONE)
    network_ns = response.time_ns - request.time_ns - server_ns
    waits = np.isin(table.api_key, list(WAIT_BY_DESIGN))
    is_slow = (network_ns >= least_ns) | ((server_ns >= least_ns) & ~waits)
    slow: NDArray[np.bool_] = is_known & is_slow
    return slow
