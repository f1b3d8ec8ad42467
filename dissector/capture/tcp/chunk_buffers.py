"""The columns of `Chunks` while a window is processed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from dissector.capture.columns import DATA, IN_WINDOW, Bytes, Chunks
from dissector.capture.formats.window_buffers import BufferPool, single_use
from dissector.capture.tcp.connection_table import COUNT_AT, FIRST_BYTES
from dissector.capture.tcp.tcp_rows import ChunkArrays, ConnectionRow, Counts
from dissector.kernel import Kernel
from dissector.kernel.arrays import U8
from dissector.kernel.named_rows import RowArray, Rows, row_of

_FIRST_ROWS = 64


@Kernel
def keep_first_bytes(data: U8, chunks: ChunkArrays, connections: Rows[ConnectionRow]) -> None:
    """
    Append the first bytes of chunks to those of their streams; see `StreamRow.first_bytes`.

    Of a stream that begins with a gap, or within a connection, they are those after it.

    Args:
        data: The bytes of the window.
        chunks: Of the window; their connections are rows.
        connections: The rows.
    """
    for i in range(len(chunks.connection)):
        if chunks.kind[i] != DATA:
            continue
        stream = connections[chunks.connection[i]].streams[chunks.side[i]]
        count, value = stream.first_bytes >> COUNT_AT, stream.first_bytes & (1 << COUNT_AT) - 1
        more, in_window = min(chunks.length[i], FIRST_BYTES - count), chunks.origin[i] == IN_WINDOW
        for at in range(chunks.start[i], chunks.start[i] + more):
            value = value << 8 | (int(data[at]) if in_window else int(chunks.carry_over[at]))
        stream.first_bytes = (count + more) << COUNT_AT | value


class ChunkBuffers:
    """
    Room for the rows of one window, and for bytes of earlier windows.

    Attributes:
        carry_over: The carry-over buffer; there is room for more bytes.
    """

    def __init__(self, counts: RowArray) -> None:
        """Start a window; `counts` are the shared counters, `Counts`."""
        self._table = counts
        self._buffers = BufferPool()
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
        wide = self._buffers.acquire(np.int64, 8, room)
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

    def build(self, data: Bytes, connections: RowArray) -> Chunks:
        """Return the rows of the window with these bytes, and start the next window."""
        counts = self._counts
        columns: list[Any] = [column[: counts.rows] for column in self._columns]
        columns.append(self.carry_over[: counts.carried_bytes])
        arrays: Any = ChunkArrays._make(columns)
        keep_first_bytes(data, arrays, connections)
        self._begin()
        return Chunks(data=data, **arrays._asdict())
