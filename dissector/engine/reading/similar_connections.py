"""
Connections that are alike as before and behind a proxy or sidecar.

A proxy opens connections of its own, so nothing in the headers of TCP proves that the same messages
are captured twice: the bytes of both directions are as many, and come and end at the same times.
Others may be alike by chance, so they all count.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dissector.capture.columns import Int64s, UInt64s
from dissector.capture.tcp.connections import ConnectionColumns
from dissector.engine.reading.reader import Reading

_LEAST_BYTES = 1000
"""In both directions; clients of one kind begin with the same few bytes."""

_SAME_TIME_NS = 50_000_000
_SAME_DELAY_NS = 10_000_000
"""A proxy opens its connection within the first, and passes the end on as fast."""


def similar_connections(reading: Reading, parts: Sequence[Int64s]) -> int:
    """
    Return how many Kafka connections of a capture that was read are like an earlier one.

    Args:
        reading: The capture.
        parts: What `carried` returns of all its connections.
    """
    connections = reading.streams.connections
    copies = np.array([*reading.copies.found] if reading.copies is not None else [], np.int64)
    if not parts:
        return 0
    rows = np.concatenate(parts)
    rows = rows[~np.isin(rows[:, 0], copies)]
    # By bytes of both sides, then by time: those that are alike are neighbours.
    rows = rows[np.lexsort(rows[:, 3:0:-1].T)]
    later = np.diff(rows, axis=0)
    is_alike = (later[:, 1:3] == 0).all(axis=1) & (later[:, 3] <= _SAME_TIME_NS)
    is_alike &= np.abs(later[:, 4] - later[:, 3]) <= _SAME_DELAY_NS
    first = np.flatnonzero(is_alike)
    others = rows[first + 1, 0]
    ways = [_ways(connections.columns(numbers)) for numbers in (rows[first, 0], others)]
    others = others[(ways[0] != ways[1]).any(axis=1)]  # another way, not the next in turn
    # In order those at rest are unpacked once.
    states = map(reading.correlator.state_of, np.sort(others).tolist())
    return sum(state is not None and state.speaks == "kafka" for state in states)


def _ways(columns: ConnectionColumns) -> UInt64s:
    """Return the addresses of both sides, and the port of the second."""
    both = columns.address[:, 0], columns.address[:, 1]
    return np.column_stack((*both, columns.port[:, 1].astype(np.uint64)))


def carried(columns: ConnectionColumns) -> Int64s:
    """Return number, bytes of both sides, first and last time of connections with many bytes."""
    sent, times = columns.bytes, (columns.first_ns, columns.last_ns)
    rows: Int64s = np.column_stack((columns.number, sent, *times))
    return rows[(sent >= _LEAST_BYTES).all(axis=1)]
