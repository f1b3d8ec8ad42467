"""
Connections that end in a window, and gaps in their streams.

Of an end: time, kind, and side that closed first; of a gap: the side, and the times around it.
Readings without an end forget connections a while after theirs.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dissector.capture.columns import END, GAP, Chunks, Int8s, Int64s
from dissector.capture.tcp.connection_table import ConnectionTable
from dissector.capture.tcp.connections import END_REASONS
from dissector.capture.tcp.reassembly import Streams
from dissector.engine.correlation.correlator import Correlator
from dissector.engine.reading.connection_copies import ConnectionCopies
from dissector.engine.reading.tls_decryption import TlsDecryption
from dissector.kernel.packed_rows import BLOCK_ROWS

FIN, RST = END_REASONS.index("fin"), END_REASONS.index("rst")


FORGET_NS = 240_000_000_000
"""
How long a connection is known after its last packet.

Source: RFC 9293, 3.4.2 and 3.6.1: segments live for two minutes (MSL), and the side that closed
answers a repeated FIN for twice that time.
"""

MAX_SILENT = 100_000
"""Most connections at rest without a known end; those that are silent for longest are forgotten."""

_LONGEST_SILENCE_NS = 600_000_000_000
"""Until then a connection of one side, such as a SYN without an answer, waits for the other."""

_MOST_DOUBTFUL = 4096
"""Connections that ended after a few responses wait for a proof that they led to a broker."""


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


class EndedConnections:
    """
    Connections that have ended: all stages forget them a while later, together.

    What they counted stays in the sums of the stages. By the clock of the capture, which only goes
    forward: a packet from the far future makes connections forgotten at once, and a later segment
    of one of them begins another.
    """

    def __init__(
        self,
        streams: Streams,
        correlator: Correlator,
        decryption: TlsDecryption,
        copies: ConnectionCopies | None,
    ) -> None:
        self._streams, self._correlator = streams, correlator
        self._stages = [each for each in (correlator, decryption, copies) if each is not None]
        self._number: Int64s = np.zeros(0, np.int64)
        self._forget_at_ns: Int64s = np.zeros(0, np.int64)
        self._next_size = MAX_SILENT
        streams.connections.longest_silence_ns = _LONGEST_SILENCE_NS
        correlator.most_doubtful = _MOST_DOUBTFUL

    def __len__(self) -> int:
        return len(self._number)

    def add(self, chunks: Chunks) -> None:
        """Take the ends in a window of reassembled bytes."""
        rows = np.flatnonzero(chunks.kind == END)
        if len(rows):
            self._number = np.concatenate((self._number, chunks.connection[rows]))
            later = chunks.time_ns[rows] + FORGET_NS
            self._forget_at_ns = np.concatenate((self._forget_at_ns, later))

    def forget(self) -> None:
        """Forget connections, between two windows, if there are many; all of these are at rest."""
        connections = self._streams.connections
        due = np.flatnonzero(self._forget_at_ns <= connections.clock_ns)
        if len(due) >= BLOCK_ROWS:
            due = due[self._may_be_forgotten(self._number[due])]
            last_ns = connections.fields(self._number[due], "last_ns")[0]
            self._forget_at_ns[due] = last_ns + FORGET_NS
            self._drop(self._number[due[self._forget_at_ns[due] <= connections.clock_ns]])
        if connections.size >= self._next_size:
            self._next_size = connections.size + MAX_SILENT // 8
            resting = connections.resting.in_order()
            silent = resting[~np.isin(resting, self._number)][:-MAX_SILENT]
            self._drop(silent[self._may_be_forgotten(silent)])

    def _may_be_forgotten(self, numbers: Int64s) -> NDArray[np.bool_]:
        is_at_rest = self._streams.connections.resting.has(numbers)
        return is_at_rest & self._correlator.may_drop(numbers)

    def _drop(self, numbers: Int64s) -> None:
        if not len(numbers):
            return
        is_kept = ~np.isin(self._number, numbers)
        self._number, self._forget_at_ns = self._number[is_kept], self._forget_at_ns[is_kept]
        for stage in self._stages:
            stage.drop(numbers)
        self._streams.drop(numbers)  # the others may ask for what it knows
