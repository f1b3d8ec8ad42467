"""The tables of the loop in `pairing`, which Python makes room in, reads and writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dissector.capture.columns import NEVER, Bytes
from dissector.capture.formats.window_buffers import BufferPool
from dissector.engine.correlation.linked_lists import copy
from dissector.engine.correlation.state_columns import (
    COPIES,
    COPY_WIDTH,
    FAR,
    FRAME_WIDTH,
    FREE,
    HELD,
    LENGTH,
    LIVE,
    NEXT,
    NODE_WIDTH,
    NUMBERS,
    PACKET,
    ROW_CLIENT,
    ROW_CONNECTION,
    ROW_ID,
    ROW_KEY,
    ROW_REQUEST,
    ROW_RESPONSE,
    ROW_STATUS,
    ROW_TOKEN,
    ROW_UNASKED,
    ROW_VERSION,
    ROW_WIDTH,
    ROWS,
    START,
    USED,
    WIDTH,
    WINDOW,
)
from dissector.engine.tables.column_types import with_capacity
from dissector.engine.tables.exchange_table import Exchanges, Frames, Ints

SPARE_BYTES = 1 << 20
"""How much more than twice what is wanted may be held before it is sorted out."""

FIRST_BYTES = 1024
"""How much of a frame in pieces is looked at."""

_COPY_WORK = 30

_NO_BYTES: Bytes = np.zeros(0, np.uint8)
_NO_ROWS: Ints = np.zeros((ROW_WIDTH, 0), np.int64)

_UNUSED = np.zeros(NODE_WIDTH, np.int64)
_UNUSED[START], _UNUSED[PACKET] = FAR, NEVER


class StateTables:
    """
    What `connections` describes.

    Attributes:
        counters: The loop's own.
        connections: By number of connection.
        entries: Requests, pieces and ids, in chains.
        rows: The exchanges of this window, a column each.
        copies: From which address to which place in what is held, and how many bytes.
        emitters: Talks of which an exchange was told.
        data: The bytes of this window.
        carry_over: Bytes that do not lie in the window, or not in one piece.
        frame_head: Room for the first bytes of a frame in pieces.
    """

    def __init__(self) -> None:
        self.counters: Ints = np.zeros(NUMBERS, np.int64)
        self.counters[FREE] = -1
        self.connections: Ints = np.zeros((0, WIDTH), np.int64)
        self.entries: Ints = np.zeros((64, NODE_WIDTH), np.int64)
        self.rows: Ints = _NO_ROWS
        self.copies: Ints = np.zeros((64, COPY_WIDTH), np.int64)
        self.emitters: Ints = np.zeros(64, np.int64)
        self.data: Bytes = _NO_BYTES
        self.carry_over: Bytes = _NO_BYTES
        self.frame_head: Bytes = np.zeros(FIRST_BYTES, np.uint8)
        self._buffers = BufferPool()
        self._grown = 0

    def __getstate__(self) -> dict[str, Any]:
        used = max(self.counter(HELD), 1)
        return {**self.__dict__, "carry_over": self.carry_over[:used]}

    def begin(self, data: Bytes, count: int) -> None:
        """Begin a window with room for so many exchanges."""
        self.data = data
        self.counters[WINDOW] = len(data)
        self.counters[ROWS] = 0
        self.rows = self._buffers.acquire(np.int64, ROW_WIDTH, count)
        # As much as in the last window will be held, and be it a little more.
        self._lengthen_held(self.counter(HELD) + self._grown + self._grown // 4)
        self._grown = -self.counter(HELD)

    def end(self) -> Exchanges:
        """Return the exchanges that were told, and hold what is still wanted of the window."""
        self.join_fragments()
        count = self.counter(ROWS)
        rows = self.rows[:, :count]
        request, response = (
            Frames(*rows[at : at + FRAME_WIDTH]) for at in (ROW_REQUEST, ROW_RESPONSE)
        )
        exchanges = Exchanges(
            data=self.data,
            carry_over=self.carry_over[: self.counter(HELD)],
            connection=rows[ROW_CONNECTION],
            status=rows[ROW_STATUS].astype(np.int8),
            client=rows[ROW_CLIENT].astype(np.int8),
            token=rows[ROW_TOKEN].astype(np.bool_),
            answers_acks_0=(rows[ROW_UNASKED] & 1).astype(np.bool_),
            broken_off=(rows[ROW_UNASKED] >> 1).astype(np.int8),
            api_key=rows[ROW_KEY],
            api_version=rows[ROW_VERSION],
            correlation_id=rows[ROW_ID],
            request=request,
            response=response,
        )
        self._carry_window()
        # Nothing here prolongs the life of the window.
        self.data, self.rows = _NO_BYTES, _NO_ROWS
        return exchanges

    def counter(self, name: int) -> int:
        """Return one of the loop's numbers."""
        return int(self.counters[name])

    def carry(self, data: bytes | bytearray | Bytes) -> int:
        """Keep some bytes; return their address."""
        at = self.counter(HELD)
        end = at + len(data)
        self._lengthen_held(end)
        self.carry_over[at:end] = np.frombuffer(data, np.uint8)
        self.counters[HELD] = end
        return FAR + at

    def bytes_at(self, address: int, length: int) -> bytes:
        """Return some bytes of the window or of what is held."""
        if address < FAR:
            return self.data[address : address + length].tobytes()
        return self.carry_over[address - FAR : address - FAR + length].tobytes()

    def new_entry(self, *values: int) -> int:
        """Make a node, without a successor; return its number."""
        numbers = self.counters
        at = self.counter(FREE)
        if at < 0:
            at = self.counter(USED)
            self.entries = with_capacity(self.entries, at + 1)
            numbers[USED] = at + 1
        else:
            numbers[FREE] = self.entries[at, NEXT]
        numbers[LIVE] += 1
        self.entries[at] = (-1, *values)
        return at

    def pop_list(self, first: int) -> Iterator[list[int]]:
        """Yield the nodes from one on, and give them back."""
        while first >= 0:
            node = self.entries[first].tolist()
            self.free_entry(first)
            yield node
            first = node[NEXT]

    def link_entries(self, nodes: Sequence[int]) -> tuple[int, int]:
        """Make a chain of nodes; return the first and the last, or -1."""
        if not nodes:
            return -1, -1
        self.entries[nodes[:-1], NEXT] = nodes[1:]
        return nodes[0], nodes[-1]

    def free_entry(self, at: int) -> None:
        """Give a node back."""
        self.entries[at] = _UNUSED
        self.entries[at, NEXT] = self.counters[FREE]
        self.counters[FREE] = at
        self.counters[LIVE] -= 1

    def append_row(self, values: Sequence[int]) -> None:
        """Tell an exchange."""
        count = self.counter(ROWS)
        self.widen_rows(count + 1)
        self.rows[:, count] = values
        self.counters[ROWS] = count + 1

    def widen_rows(self, count: int) -> None:
        """Make room for so many exchanges."""
        room = self.rows.shape[1]
        if count > room:
            wider: Ints = self._buffers.acquire(np.int64, ROW_WIDTH, max(count, 2 * room))
            wider[:, :room] = self.rows
            self.rows = wider

    def join_fragments(self) -> None:
        """Copy the pieces of frames that the loop has found whole."""
        count = self.counter(COPIES)
        if count:
            self._lengthen_held(self.counter(HELD))
            held = self.carry_over
            copy(self.copies, count, self.data, held, held, work=_COPY_WORK * count)
            self.counters[COPIES] = 0

    def _carry_window(self) -> None:
        """
        Hold what lies in the window and is still wanted, as the window goes.

        What is held is never written twice, as exchanges that were told refer to it: where most of
        it is wanted no more, the rest moves to a new place.
        """
        self._grown += self.counter(HELD)
        nodes = self.entries[: self.counter(USED)]
        start, length = nodes[:, START], nodes[:, LENGTH]
        source, begins = self.carry_over, self.counter(HELD)
        anew = begins > 2 * int(length.sum()) + SPARE_BYTES
        moved = np.flatnonzero(length) if anew else np.flatnonzero(start < FAR)
        begins = 0 if anew else begins
        ends = begins + np.cumsum(length[moved])
        end = int(ends[-1]) if len(moved) else begins
        if anew:
            self.carry_over = self._buffers.acquire(np.uint8, 2 * end)
        self._lengthen_held(end, begins)
        copies = np.stack([start[moved], ends - length[moved], length[moved]], axis=1)
        copies = np.ascontiguousarray(copies)
        copy(copies, len(moved), self.data, source, self.carry_over, work=_COPY_WORK * len(moved))
        nodes[moved, START] = FAR + copies[:, 1]
        self.counters[HELD] = end

    def _lengthen_held(self, count: int, used: int | None = None) -> None:
        """Make room for so many bytes, keeping those that are used."""
        if count > len(self.carry_over):
            longer_one = self._buffers.acquire(np.uint8, max(count, 2 * len(self.carry_over)))
            used = min(len(self.carry_over), self.counter(HELD)) if used is None else used
            longer_one[:used] = self.carry_over[:used]
            self.carry_over = longer_one
