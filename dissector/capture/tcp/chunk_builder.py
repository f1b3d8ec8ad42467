"""The rows of `Chunks`, as they are told."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dissector.capture.columns import (
    DATA,
    END,
    GAP,
    IN_CARRY_OVER,
    IN_WINDOW,
    NEVER,
    Bytes,
    Chunks,
    Int8s,
    Int64s,
)
from dissector.capture.formats.window_buffers import BufferPool
from dissector.capture.tcp.reorder_buffer import ReorderBuffer, SegmentBytes

CONNECTION, START, LENGTH, PACKET, TIME_NS, RELEASE = range(6)
"""Rows of `Release.wide`: columns of `Chunks`."""

SIDE, KIND, ORIGIN = range(3)
"""Rows of `Release.narrow`."""

MAX_ROWS_PER_SEGMENT = 2
"""How many rows one segment gives at most, if it is simply the next of its connection."""

_FIRST_ROWS = 64


@dataclass(slots=True)
class ReorderState:
    """
    What waits on the two sides of a connection, and what has been told of it.

    Attributes:
        connection: Number of the connection.
        buffers: Of side 0 and 1, the segments behind a hole; None where none are.
        emitted: Of side 0 and 1, the horizon in the newest row.
    """

    connection: int
    buffers: list[ReorderBuffer | None]
    emitted: tuple[int, int] = (NEVER, NEVER)

    def barriers(self) -> tuple[int, int]:
        """Return for each side the lowest packet whose bytes wait."""
        return _first_packet(self.buffers[0]), _first_packet(self.buffers[1])


def _first_packet(waiting: ReorderBuffer | None) -> int:
    first = None if waiting is None else waiting.oldest
    return NEVER if first is None else first.packet


class ChunkBuilder:
    """
    Gathers rows in one window.

    Attributes:
        packet: The packet that is being looked at.
        count: How many rows there are.
        wide: Their numbers, a column of `Chunks` after the other; there is room for more.
        narrow: Likewise those that are small.
        barrier: The column of that name.
    """

    def __init__(self) -> None:
        self.packet = 0
        self._buffers = BufferPool()
        self._held = bytearray()
        self._fresh: list[SegmentBytes] = []
        self._begin(_FIRST_ROWS)

    def _begin(self, room: int) -> None:
        self.count = 0
        self.wide: Int64s = self._buffers.acquire(np.int64, 6, room)
        self.narrow: Int8s = self._buffers.acquire(np.int8, 3, room)
        self.barrier: Int64s = self._buffers.acquire(np.int64, room, 2)

    def reserve(self, room: int) -> None:
        """Make room for so many rows more."""
        old, count = (self.wide, self.narrow, self.barrier), self.count
        if count + room <= len(self.barrier):
            return
        self._begin(max(2 * count, count + room))
        self.count = count
        self.wide[:, :count], self.narrow[:, :count] = old[0][:, :count], old[1][:, :count]
        self.barrier[:count] = old[2][:count]

    def emit_data(self, stalls: ReorderState, side: int, piece: SegmentBytes) -> None:
        """Tell the bytes of a piece that has come to its turn."""
        piece.released = True
        if not piece.captured:
            return
        origin, start = IN_WINDOW, piece.start
        if piece.copied is not None:
            origin, start = IN_CARRY_OVER, len(self._held)
            self._held += piece.copied
        self._add(stalls, side, DATA, origin, start, piece.captured, piece.packet, piece.time_ns)

    def emit_gap(
        self, stalls: ReorderState, side: int, length: int, packet: int, time_ns: int
    ) -> None:
        """Tell that bytes are missing."""
        self._add(stalls, side, GAP, IN_WINDOW, 0, length, packet, time_ns)

    def emit_end(self, stalls: ReorderState, side: int, time_ns: int) -> None:
        """Tell that the packet that is being looked at ended the connection."""
        self._add(stalls, side, END, IN_WINDOW, 0, 0, self.packet, time_ns)

    def emit_barriers(self, stalls: ReorderState, time_ns: int) -> None:
        """Tell where something no longer waits of which no row has told."""
        horizon = stalls.barriers()
        for side in (0, 1):
            if horizon[side] > stalls.emitted[side]:
                self._add(stalls, side, DATA, IN_WINDOW, 0, 0, self.packet, time_ns)

    def keep_bytes(self, piece: SegmentBytes) -> None:
        """Keep a piece's bytes if it still waits when the window is over."""
        self._fresh.append(piece)

    def build(self, data: Bytes) -> Chunks:
        """Return the rows of the window with these bytes, and begin the next."""
        for piece in self._fresh:
            if not piece.released and piece.copied is None:
                piece.copied = data[piece.start : piece.start + piece.captured].tobytes()
        wide, narrow = self.wide[:, : self.count], self.narrow[:, : self.count]
        chunks = Chunks(
            data=data,
            carry_over=np.frombuffer(bytes(self._held), dtype=np.uint8),
            connection=wide[CONNECTION],
            side=narrow[SIDE],
            kind=narrow[KIND],
            origin=narrow[ORIGIN],
            start=wide[START],
            length=wide[LENGTH],
            packet=wide[PACKET],
            time_ns=wide[TIME_NS],
            release=wide[RELEASE],
            barrier=self.barrier[: self.count],
        )
        self._held = bytearray()
        self._fresh = []
        self._begin(_FIRST_ROWS)
        return chunks

    def _add(
        self,
        stalls: ReorderState,
        side: int,
        kind: int,
        origin: int,
        start: int,
        length: int,
        packet: int,
        time_ns: int,
    ) -> None:
        stalls.emitted = stalls.barriers()
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
        self.barrier[at] = stalls.emitted
        self.count += 1
