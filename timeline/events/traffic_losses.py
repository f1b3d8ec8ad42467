"""
Time ranges of lost traffic, by broker.

An event rests on observed and on absent exchanges, such as an earlier cause of a rebalance. Loss on
any connection of the broker makes it uncertain, for the lifetime of the connection. If the begin of
a connection is not captured, everything before its first packet is unknown, as are requests of
orphan responses.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dissector.capture.addresses import endpoint_text
from dissector.engine.reading.reader import Reading
from dissector.engine.tables.exchange_table import Ints
from timeline.events.event import Event

_ALWAYS_NS = 2**62
_BYTES, _LOSSES = 1, [4, 5, 6]
"""Columns of a side: bytes; gaps, their bytes, and truncated bytes."""


class TrafficLosses:
    """Records time ranges of possibly incomplete traffic for each broker."""

    def __init__(self) -> None:
        self._lost: dict[str, tuple[int, int]] = {}
        self._settled: dict[str, tuple[int, int]] = {}
        self._orphan_ns: dict[str, int] = {}

    def add_orphan(self, broker: str, time_ns: int) -> None:
        """Add a response without its request."""
        self._orphan_ns[broker] = max(time_ns, self._orphan_ns.get(broker, 0))

    def update(self, reading: Reading) -> None:
        """Update the losses of all connections."""
        self._lost = dict(self._settled)
        _add_losses(self._lost, reading, None)

    def settle(self, reading: Reading, numbers: Ints) -> None:
        """Retain the losses of connections that the reading drops."""
        _add_losses(self._settled, reading, numbers)

    def covers(self, event: Event) -> bool:
        """Return whether all traffic required for an event is captured."""
        since_ns = event.needs.since_ns
        for broker in event.needs.brokers:
            begin, end = self._lost.get(broker, (_ALWAYS_NS, -_ALWAYS_NS))
            if begin <= event.end_ns and since_ns <= end:
                return False
            if since_ns <= self._orphan_ns.get(broker, -_ALWAYS_NS):
                return False
        return True


def _add_losses(lost: dict[str, tuple[int, int]], reading: Reading, numbers: Ints | None) -> None:
    """Add the ranges of possibly incomplete traffic of connections, by both endpoints."""
    columns = reading.streams.connections.columns(numbers)
    if not len(columns):
        return
    is_lossy: NDArray[np.bool_] = columns.sides[:, :, _LOSSES].max(axis=(1, 2)) > 0
    is_lossy |= np.isin(columns.number, reading.correlator.skipping())
    has_data = columns.sides[:, :, _BYTES].any(axis=1)
    for at in np.flatnonzero(is_lossy | ~columns.both_syns & has_data).tolist():
        begin = int(columns.first_ns[at]) if columns.both_syns[at] else -_ALWAYS_NS
        end = int((columns.last_ns if is_lossy[at] else columns.first_ns)[at])
        for side in (0, 1):
            high, low = columns.address[at, side].tolist()
            broker = endpoint_text(high, low, int(columns.port[at, side]))
            known = lost.get(broker, (begin, end))
            lost[broker] = min(begin, known[0]), max(end, known[1])
