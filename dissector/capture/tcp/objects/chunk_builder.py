"""Builder of the rows of `Chunks`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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
from dissector.capture.formats.window_buffers import BufferPool, single_use
from dissector.capture.tcp.both_paths.chunk_columns import (
    CONNECTION,
    KIND,
    LENGTH,
    ORIGIN,
    PACKET,
    RELEASE,
    SIDE,
    START,
    TIME_NS,
)
from dissector.capture.tcp.both_paths.waiting_columns import CARRIED_BYTES, ROWS
from dissector.capture.tcp.objects.reorder_buffer import ReorderBuffer, SegmentBytes

_FIRST_ROWS = 64


@dataclass(slots=True)
class ReorderState:
    """
    The out-of-order segments of a connection's two sides, and the barriers emitted for them.

    Attributes:
        connection: Number of the connection.
        buffers: Of side 0 and 1, the segments behind a hole; None without any.
        emitted: Of side 0 and 1, the barrier in the newest row.
    """

    connection: int
    buffers: list[ReorderBuffer | None]
    emitted: tuple[int, int] = (NEVER, NEVER)

    def barriers(self) -> tuple[int, int]:
        """Return for each side the lowest packet with waiting bytes."""
        return _oldest_packet(self.buffers[0]), _oldest_packet(self.buffers[1])


def _oldest_packet(buffer: ReorderBuffer | None) -> int:
    oldest = None if buffer is None else buffer.oldest
    return NEVER if oldest is None else oldest.packet


class ChunkBuilder:
    """
    Collects the rows of one window.

    Attributes:
        packet: The packet that is being processed.
        wide: 64-bit columns of `Chunks`; there is room for more rows.
        narrow: 8-bit columns, in the same form.
        barrier: The column with that name, in the same form.
        carry_over: The carry-over buffer; there is room for more bytes.
    """

    def __init__(self, counts: Int64s) -> None:
        """Start a window; `counts` are the shared counters, see `waiting_columns`."""
        self.packet = 0
        self._counts = counts
        self._buffers = BufferPool()
        self._waiting: list[SegmentBytes] = []
        self._begin(_FIRST_ROWS)
        self._begin_carry_over()

    def __getstate__(self) -> dict[str, Any]:
        """Return the state between two windows, without memory of arbitrary content."""
        left_out = ("wide", "narrow", "barrier", "carry_over")
        return {name: value for name, value in self.__dict__.items() if name not in left_out}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._begin(_FIRST_ROWS)
        self._begin_carry_over()

    @property
    def count(self) -> int:
        """Number of rows."""
        return int(self._counts[ROWS])

    def _begin(self, room: int) -> None:
        self._counts[ROWS] = 0
        self.wide: Int64s = self._buffers.acquire(np.int64, 6, room)
        self.narrow: Int8s = self._buffers.acquire(np.int8, 3, room)
        self.barrier: Int64s = self._buffers.acquire(np.int64, room, 2)

    def reserve(self, room: int, more: int = 0) -> None:
        """Make room for this many more rows; at a new capacity, for some beyond these too."""
        old, count = (self.wide, self.narrow, self.barrier), self.count
        if count + room <= len(self.barrier):
            return
        self._begin(max(2 * count, count + room + more))
        self._counts[ROWS] = count
        self.wide[:, :count], self.narrow[:, :count] = old[0][:, :count], old[1][:, :count]
        self.barrier[:count] = old[2][:count]

    def _begin_carry_over(self) -> None:
        self._expected = int(self._counts[CARRIED_BYTES])
        self._counts[CARRIED_BYTES] = 0
        self.carry_over: Bytes = np.empty(0, np.uint8)

    def reserve_carry_over(self, room: int) -> None:
        """Make room for more bytes in the carry-over buffer."""
        used = int(self._counts[CARRIED_BYTES])
        if used + room > len(self.carry_over):
            # Expect a little more than in the last window.
            expected = max(self._expected + self._expected // 4, 2 * len(self.carry_over))
            wider = single_use(max(used + room, expected))
            wider[:used] = self.carry_over[:used]
            self.carry_over = wider

    def emit_data(self, reorder: ReorderState, side: int, segment: SegmentBytes) -> None:
        """Emit bytes of a segment that are next in their stream."""
        segment.released = True
        if not segment.captured:
            return
        origin, start = IN_WINDOW, segment.start
        if segment.copied is not None:
            self.reserve_carry_over(segment.captured)
            origin, start = IN_CARRY_OVER, int(self._counts[CARRIED_BYTES])
            end = start + segment.captured
            self.carry_over[start:end] = np.frombuffer(segment.copied, np.uint8)
            self._counts[CARRIED_BYTES] = end
        self._add(
            reorder, side, DATA, origin, start, segment.captured, segment.packet, segment.time_ns
        )

    def emit_gap(
        self,
        reorder: ReorderState,
        side: int,
        length: int,
        packet: int,
        time_ns: int,
        since_ns: int,
    ) -> None:
        """Emit that bytes are missing, since the data at `since_ns`."""
        self._add(reorder, side, GAP, IN_WINDOW, since_ns, length, packet, time_ns)

    def emit_end(self, reorder: ReorderState, side: int, time_ns: int) -> None:
        """Emit the end of the connection, caused by the packet that is being processed."""
        self._add(reorder, side, END, IN_WINDOW, 0, 0, self.packet, time_ns)

    def emit_barriers(self, reorder: ReorderState, time_ns: int) -> None:
        """Emit an empty row for each side with a barrier above the newest row's."""
        barriers = reorder.barriers()
        for side in (0, 1):
            if barriers[side] > reorder.emitted[side]:
                self._add(reorder, side, DATA, IN_WINDOW, 0, 0, self.packet, time_ns)

    def keep_bytes(self, segment: SegmentBytes) -> None:
        """Copy a segment's bytes at the end of the window if they still wait then."""
        self._waiting.append(segment)

    def build(self, data: Bytes) -> Chunks:
        """Return the rows of the window with these bytes, and start the next window."""
        for segment in self._waiting:
            if not segment.released and segment.copied is None:
                segment.copied = data[segment.start : segment.start + segment.captured].tobytes()
        count = self.count
        wide, narrow = self.wide[:, :count], self.narrow[:, :count]
        chunks = Chunks(
            data=data,
            carry_over=self.carry_over[: int(self._counts[CARRIED_BYTES])],
            connection=wide[CONNECTION],
            side=narrow[SIDE],
            kind=narrow[KIND],
            origin=narrow[ORIGIN],
            start=wide[START],
            length=wide[LENGTH],
            packet=wide[PACKET],
            time_ns=wide[TIME_NS],
            release=wide[RELEASE],
            barrier=self.barrier[:count],
        )
        self._waiting = []
        self._begin(_FIRST_ROWS)
        self._begin_carry_over()
        return chunks

    def _add(
        self,
        reorder: ReorderState,
        side: int,
        kind: int,
        origin: int,
        start: int,
        length: int,
        packet: int,
        time_ns: int,
    ) -> None:
        reorder.emitted = reorder.barriers()
        self.reserve(1)
        at, wide, narrow = self.count, self.wide.data, self.narrow.data
        wide[CONNECTION, at] = reorder.connection
        wide[START, at] = start
        wide[LENGTH, at] = length
        wide[PACKET, at] = packet
        wide[TIME_NS, at] = time_ns
        wide[RELEASE, at] = self.packet
        narrow[SIDE, at] = side
        narrow[KIND, at] = kind
        narrow[ORIGIN, at] = origin
        self.barrier[at] = reorder.emitted
        self._counts[ROWS] = at + 1
