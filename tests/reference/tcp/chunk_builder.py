"""Builder of the rows of `Chunks`."""

from __future__ import annotations

from dataclasses import dataclass, field
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
from dissector.capture.tcp.tcp_rows import NONE, ChunkArrays
from tests.reference.tcp.reorder_buffer import ReorderBuffer, SegmentBytes


@dataclass(slots=True)
class ReorderState:
    """
    The out-of-order segments of a connection's two sides, and the barriers emitted for them.

    Attributes:
        connection: Number of the connection.
        buffers: Of side 0 and 1, the segments behind a hole; None without any.
        emitted: Of side 0 and 1, the barrier in the newest row.
        least_ns: The least RTT of the bytes of each.
        resent_ns: When each last sent bytes again.
    """

    connection: int
    buffers: list[ReorderBuffer | None]
    emitted: tuple[int, int] = (NEVER, NEVER)
    least_ns: list[int] = field(default_factory=lambda: [-1, -1])
    resent_ns: list[int] = field(default_factory=lambda: [NONE, NONE])

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
    """

    def __init__(self) -> None:
        self.packet = 0
        self._waiting: list[SegmentBytes] = []
        self._rows: list[tuple[object, ...]] = []
        self._carry_over = bytearray()

    def emit_data(self, reorder: ReorderState, side: int, segment: SegmentBytes) -> None:
        """Emit bytes of a segment that are next in their stream."""
        segment.released = True
        if not segment.captured:
            return
        origin, start = IN_WINDOW, segment.start
        if segment.copied is not None:
            origin, start = IN_CARRY_OVER, len(self._carry_over)
            self._carry_over += segment.copied
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
        columns = zip(*self._rows, strict=True) if self._rows else [()] * 12
        types: list[type[Any]] = [*[np.int64] * 8, *[np.int8] * 3, np.int64]
        arrays: list[Any] = [
            np.array(each, kind) for each, kind in zip(columns, types, strict=True)
        ]
        *named, barrier = arrays
        carry_over = np.frombuffer(bytes(self._carry_over), np.uint8)
        names = ChunkArrays._fields[:11]
        self._waiting, self._rows, self._carry_over = [], [], bytearray()
        return Chunks(
            data=data,
            carry_over=carry_over,
            barrier=barrier.reshape(-1, 2),
            **dict(zip(names, named, strict=True)),
        )

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
        other = reorder.least_ns[1 - side], reorder.resent_ns[1 - side]
        wide = reorder.connection, start, length, packet, time_ns, self.packet, *other
        self._rows.append((*wide, side, kind, origin, reorder.emitted))
