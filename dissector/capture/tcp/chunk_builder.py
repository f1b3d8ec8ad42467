"""The rows of `Chunks`, as they are told."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dissector.capture.columns import (
    DATA,
    END,
    GAP,
    IN_DATA,
    IN_HELD,
    NEVER,
    Bytes,
    Chunks,
    Int8s,
    Int64s,
)
from dissector.capture.formats.window_buffers import Buffers
from dissector.capture.tcp.reorder_buffer import Piece, Waiting

CONNECTION, START, LENGTH, PACKET, TIME_NS, RELEASE = range(6)
"""Rows of `Release.wide`: columns of `Chunks`."""

SIDE, KIND, ORIGIN = range(3)
"""Rows of `Release.narrow`."""

ROOM = 2
"""How many rows one segment gives at most, if it is simply the next of its connection."""

_FIRST_ROWS = 64


@dataclass(slots=True)
class Stalls:
    """
    What waits on the two sides of a connection, and what has been told of it.

    Attributes:
        connection: Number of the connection.
        waiting: Of side 0 and 1, the segments behind a hole; None where none are.
        told: Of side 0 and 1, the horizon in the newest row.
    """

    connection: int
    waiting: list[Waiting | None]
    told: tuple[int, int] = (NEVER, NEVER)

    def horizon(self) -> tuple[int, int]:
        """Return for each side the lowest packet whose bytes wait."""
        return _first_packet(self.waiting[0]), _first_packet(self.waiting[1])


def _first_packet(waiting: Waiting | None) -> int:
    first = None if waiting is None else waiting.first
    return NEVER if first is None else first.packet


class Release:
    """
    Gathers rows in one window.

    Attributes:
        packet: The packet that is being looked at.
        count: How many rows there are.
        wide: Their numbers, a column of `Chunks` after the other; there is room for more.
        narrow: Likewise those that are small.
        horizon: The column of that name.
    """

    def __init__(self) -> None:
        self.packet = 0
        self._buffers = Buffers()
        self._held = bytearray()
        self._fresh: list[Piece] = []
        self._begin(_FIRST_ROWS)

    def _begin(self, room: int) -> None:
        self.count = 0
        self.wide: Int64s = self._buffers.take(np.int64, 6, room)
        self.narrow: Int8s = self._buffers.take(np.int8, 3, room)
        self.horizon: Int64s = self._buffers.take(np.int64, room, 2)

    def reserve(self, room: int) -> None:
        """Make room for so many rows more."""
        old, count = (self.wide, self.narrow, self.horizon), self.count
        if count + room <= len(self.horizon):
            return
        self._begin(max(2 * count, count + room))
        self.count = count
        self.wide[:, :count], self.narrow[:, :count] = old[0][:, :count], old[1][:, :count]
        self.horizon[:count] = old[2][:count]

    def piece(self, stalls: Stalls, side: int, piece: Piece) -> None:
        """Tell the bytes of a piece that has come to its turn."""
        piece.released = True
        if not piece.captured:
            return
        origin, start = IN_DATA, piece.start
        if piece.kept is not None:
            origin, start = IN_HELD, len(self._held)
            self._held += piece.kept
        self._add(stalls, side, DATA, origin, start, piece.captured, piece.packet, piece.time_ns)

    def gap(self, stalls: Stalls, side: int, length: int, packet: int, time_ns: int) -> None:
        """Tell that bytes are missing."""
        self._add(stalls, side, GAP, IN_DATA, 0, length, packet, time_ns)

    def end(self, stalls: Stalls, side: int, time_ns: int) -> None:
        """Tell that the packet that is being looked at ended the connection."""
        self._add(stalls, side, END, IN_DATA, 0, 0, self.packet, time_ns)

    def lift(self, stalls: Stalls, time_ns: int) -> None:
        """Tell where something no longer waits of which no row has told."""
        horizon = stalls.horizon()
        for side in (0, 1):
            if horizon[side] > stalls.told[side]:
                self._add(stalls, side, DATA, IN_DATA, 0, 0, self.packet, time_ns)

    def hold(self, piece: Piece) -> None:
        """Keep a piece's bytes if it still waits when the window is over."""
        self._fresh.append(piece)

    def take(self, data: Bytes) -> Chunks:
        """Return the rows of the window with these bytes, and begin the next."""
        for piece in self._fresh:
            if not piece.released and piece.kept is None:
                piece.kept = data[piece.start : piece.start + piece.captured].tobytes()
        wide, narrow = self.wide[:, : self.count], self.narrow[:, : self.count]
        chunks = Chunks(
            data=data,
            held=np.frombuffer(bytes(self._held), dtype=np.uint8),
            connection=wide[CONNECTION],
            side=narrow[SIDE],
            kind=narrow[KIND],
            origin=narrow[ORIGIN],
            start=wide[START],
            length=wide[LENGTH],
            packet=wide[PACKET],
            time_ns=wide[TIME_NS],
            release=wide[RELEASE],
            horizon=self.horizon[: self.count],
        )
        self._held = bytearray()
        self._fresh = []
        self._begin(_FIRST_ROWS)
        return chunks

    def _add(
        self,
        stalls: Stalls,
        side: int,
        kind: int,
        origin: int,
        start: int,
        length: int,
        packet: int,
        time_ns: int,
    ) -> None:
        stalls.told = stalls.horizon()
        self.reserve(1)
        at, wide, narrow = self.count, self.wide.data, self.narrow.data
        wide[CONNECTION, at] = stalls.connection
        wide[START, at] = start
        wide[LENGTH, at] = length
        wide[PACKET, at] = packet
        wide[TIME_NS, at] = time_ns
        wide[RELEASE, at] = self.packet
        narrow[SIDE, at] = side
        narrow[KIND, at] = kind
        narrow[ORIGIN, at] = origin
        self.horizon[at] = stalls.told
        self.count += 1
