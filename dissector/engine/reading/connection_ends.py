"""
Connections that end in a window, and gaps in their streams.

Of an end: time, kind, and side that closed first; of a gap: the side, and the times around it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TypeVar

import numpy as np

from dissector.capture.columns import END, GAP, Chunks, Int8s, Int64s
from dissector.capture.tcp.connection_table import ConnectionTable
from dissector.capture.tcp.connections import END_REASONS

FIN, RST = END_REASONS.index("fin"), END_REASONS.index("rst")


@dataclass(slots=True, eq=False, repr=False)
class ConnectionEnds:
    """
    Ended connections, a row each.

    Attributes:
        connection: Number of the connection.
        packet: The packet that ended it.
        time_ns: Capture time of that packet.
        how: Index into `END_REASONS`.
        closer: The side that closed or reset it first, 0 or 1; -1: not known.
    """

    connection: Int64s
    packet: Int64s
    time_ns: Int64s
    how: Int8s
    closer: Int8s

    def __len__(self) -> int:
        return len(self.connection)

    @classmethod
    def none(cls) -> ConnectionEnds:
        """Return no ends."""
        no_numbers, no_bytes = np.zeros(0, np.int64), np.zeros(0, np.int8)
        return cls(no_numbers, no_numbers, no_numbers, no_bytes, no_bytes)

    @classmethod
    def of(cls, chunks: Chunks, connections: ConnectionTable) -> ConnectionEnds:
        """Return the ends that a window of reassembled bytes holds."""
        rows = np.flatnonzero(chunks.kind == END)
        if not len(rows):
            return cls.none()
        numbers, side = chunks.connection[rows], chunks.side[rows]
        how = connections.columns(numbers).ended
        has_closed = connections.fin_sequences(numbers) >= 0
        # A connection ends with the second FIN. A reset may answer the FIN of the other side.
        is_answer = has_closed[np.arange(len(rows)), 1 - side] & ~has_closed.all(axis=1)
        closer = np.where((how == FIN) | is_answer, 1 - side, side)
        closer[(how != FIN) & (how != RST)] = -1
        return cls(numbers, chunks.packet[rows], chunks.time_ns[rows], how, closer.astype(np.int8))

    def and_then(self, later: ConnectionEnds) -> ConnectionEnds:
        """Return these ends, and later ones."""
        return _concatenated(self, later)


@dataclass(slots=True, eq=False, repr=False)
class ConnectionGaps:
    """
    Gaps, a row each.

    Attributes:
        connection: Number of the connection.
        side: The side that sent the bytes.
        since_ns: Time of the last data before the gap; 0 without any.
        until_ns: Time of the packet that revealed it.
    """

    connection: Int64s
    side: Int8s
    since_ns: Int64s
    until_ns: Int64s

    def __len__(self) -> int:
        return len(self.connection)

    @classmethod
    def none(cls) -> ConnectionGaps:
        """Return no gaps."""
        no_numbers = np.zeros(0, np.int64)
        return cls(no_numbers, np.zeros(0, np.int8), no_numbers, no_numbers)

    @classmethod
    def of(cls, chunks: Chunks) -> ConnectionGaps:
        """Return the gaps in a window of reassembled bytes."""
        rows = np.flatnonzero(chunks.kind == GAP)
        if not len(rows):
            return cls.none()
        times = chunks.start[rows], chunks.time_ns[rows]
        return cls(chunks.connection[rows], chunks.side[rows], *times)

    def and_then(self, later: ConnectionGaps) -> ConnectionGaps:
        """Return these gaps, and later ones."""
        return _concatenated(self, later)


Rows = TypeVar("Rows", ConnectionEnds, ConnectionGaps)


def _concatenated(earlier: Rows, later: Rows) -> Rows:
    if not len(earlier) or not len(later):
        return earlier if len(earlier) else later
    names = (each.name for each in fields(earlier))
    columns = (np.concatenate((getattr(earlier, name), getattr(later, name))) for name in names)
    return type(earlier)(*columns)
