"""Builder of the rows of `Chunks`."""

from __future__ import annotations

from collections.abc import Iterable
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
)
from dissector.capture.formats.window_buffers import BufferPool, single_use
from dissector.capture.tcp.both_paths.tcp_rows import ChunkArrays, Counts
from dissector.capture.tcp.objects.reorder_buffer import ReorderBuffer, SegmentBytes
from dissector.kernel.named_rows import RowArray, row_of

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
        carry_over: The carry-over buffer; there is room for more bytes.
    """

    def __init__(self, counts: RowArray) -> None:
        """Start a window; `counts` are the shared counters, `Counts`."""
        self.packet = 0
        self._table = counts
        self._buffers = BufferPool()
        self._waiting: list[SegmentBytes] = []
        self._begin()

    def __getstate__(self) -> dict[str, Any]:
        """Return the state between two windows, without memory of arbitrary content."""
        left_out = "_columns", "carry_over"
        return {name: value for name, value in self.__dict__.items() if name not in left_out}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._begin()

    @property
    def _counts(self) -> Counts:
        return row_of(self._table, Counts)

    def _begin(self) -> None:
        """Start a window without rows."""
        counts = self._counts
        self._expected = counts.carried_bytes
        counts.rows = counts.carried_bytes = 0
        self._allocate(_FIRST_ROWS)
        self.carry_over: Bytes = np.empty(0, np.uint8)

    def _allocate(self, room: int) -> None:
        wide = self._buffers.acquire(np.int64, 6, room)
        narrow = self._buffers.acquire(np.int8, 3, room)
        self._columns = (*wide, *narrow, self._buffers.acquire(np.int64, room, 2))

    @property
    def arrays(self) -> ChunkArrays:
        """The columns and bytes of `Chunks`; there is room for more rows."""
        arrays: Iterable[Any] = (*self._columns, self.carry_over)
        return ChunkArrays._make(arrays)

    def reserve(self, room: int, more: int = 0) -> None:
        """Make room for this many more rows; at a new capacity, for some beyond these too."""
        old, count = self._columns, self._counts.rows
        if count + room <= len(old[0]):
            return
        self._allocate(max(2 * count, count + room + more))
        for target, source in zip(self._columns, old, strict=True):
            target[:count] = source[:count]

    def reserve_carry_over(self, room: int) -> None:
        """Make room for more bytes in the carry-over buffer."""
        used = self._counts.carried_bytes
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
            origin, start = IN_CARRY_OVER, self._counts.carried_bytes
            end = start + segment.captured
            self.carry_over[start:end] = np.frombuffer(segment.copied, np.uint8)
            self._counts.carried_bytes = end
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
        counts = self._counts
        arrays: list[Any] = [column[: counts.rows] for column in self._columns]
        arrays.append(self.carry_over[: counts.carried_bytes])
        named = ChunkArrays._make(arrays)._asdict()
        self._waiting = []
        self._begin()
        return Chunks(data=data, **named)

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
        at, columns = self._counts.rows, self.arrays
        columns.connection[at] = reorder.connection
        columns.start[at] = start
        columns.length[at] = length
        columns.packet[at] = packet
        columns.time_ns[at] = time_ns
        columns.release[at] = self.packet
        columns.side[at] = side
        columns.kind[at] = kind
        columns.origin[at] = origin
        columns.barrier[at, 0], columns.barrier[at, 1] = reorder.emitted
        self._counts.rows = at + 1
