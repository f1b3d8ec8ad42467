"""The state tables of the correlator: grown by Python, read and written by the kernel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dissector.capture.columns import NEVER, Bytes, Int32s
from dissector.capture.formats.window_buffers import BufferPool, single_use
from dissector.engine.correlation.both_paths.correlation_limits import MAX_SUPPRESSED
from dissector.engine.correlation.both_paths.correlator_arrays import CorrelatorArrays
from dissector.engine.correlation.both_paths.state_columns import (
    BARRIER,
    BARRIER_COUNT,
    CARRIED_BYTES,
    CARRY_OVER_BASE,
    CONNECTION_WIDTH,
    COPY_COUNT,
    COPY_WIDTH,
    COUNTER_COUNT,
    ENTRIES_LIVE,
    ENTRIES_USED,
    ENTRY_WIDTH,
    FRAME_WIDTH,
    FREE_ENTRY,
    FREE_RING,
    KAFKA,
    LENGTH,
    MODE,
    NEXT,
    PACKET,
    RINGS_USED,
    ROW_API_KEY,
    ROW_API_VERSION,
    ROW_CLIENT,
    ROW_CONNECTION,
    ROW_CORRELATION_ID,
    ROW_COUNT,
    ROW_FLAGS,
    ROW_REQUEST,
    ROW_RESPONSE,
    ROW_STATUS,
    ROW_TOKEN,
    ROW_WIDTH,
    SIDE_WIDTH,
    SIDES,
    START,
    SUPPRESSED_COUNT,
    SUPPRESSED_RING,
    UNRECOGNISED,
    WINDOW_LENGTH,
)
from dissector.engine.correlation.fast_path.linked_lists import copy_ranges
from dissector.engine.correlation.objects.open_requests import SuppressedIds
from dissector.engine.tables.column_types import with_capacity
from dissector.engine.tables.exchange_table import Exchanges, Frames, Ints

SPARE_BYTES = 1 << 20
"""The carry-over buffer is compacted when it has more than this beyond twice the bytes in use."""

FIRST_BYTES = 1024
"""Bytes of a fragmented frame that are checked."""

_NO_BYTES: Bytes = np.zeros(0, np.uint8)
_NO_ROWS: Ints = np.zeros((ROW_WIDTH, 0), np.int64)

_UNUSED = np.zeros(ENTRY_WIDTH, np.int64)
_UNUSED[START], _UNUSED[PACKET] = CARRY_OVER_BASE, NEVER


class StateTables:
    """
    The tables with the columns of `state_columns`.

    Attributes:
        counters: Counters and limits of the kernel.
        connections: A row for each connection, by number.
        entries: Requests, ready frames and fragments, in linked lists.
        rows: The exchanges of this window, a column each.
        copies: Source address, target in the carry-over buffer, and number of bytes of each copy.
        emitters: Connections that emitted their first exchange.
        data: The bytes of this window.
        carry_over: Bytes that do not lie in the window, or not in one piece.
        frame_head: Scratch space for the first bytes of a fragmented frame.
        suppressed: Rows of suppressed correlation ids.
    """

    def __init__(self) -> None:
        self.counters: Ints = np.zeros(COUNTER_COUNT, np.int64)
        self.counters[[FREE_ENTRY, FREE_RING]] = -1
        self.connections: Ints = np.zeros((0, CONNECTION_WIDTH), np.int64)
        self.entries: Ints = np.zeros((64, ENTRY_WIDTH), np.int64)
        self.rows: Ints = _NO_ROWS
        self.copies: Ints = np.zeros((64, COPY_WIDTH), np.int64)
        self.emitters: Ints = np.zeros(64, np.int64)
        self.data: Bytes = _NO_BYTES
        self.carry_over: Bytes = _NO_BYTES
        self.frame_head: Bytes = np.zeros(FIRST_BYTES, np.uint8)
        self.suppressed: Int32s = np.zeros((1, MAX_SUPPRESSED), np.int32)
        self._buffers = BufferPool()
        self._grown = 0

    def __getstate__(self) -> dict[str, Any]:
        used = max(self.counter(CARRIED_BYTES), 1)
        return {**self.__dict__, "carry_over": self.carry_over[:used]}

    def start_window(self, data: Bytes, count: int) -> None:
        """Begin a window with the given capacity for exchanges."""
        self.data = data
        self.counters[WINDOW_LENGTH] = len(data)
        self.counters[ROW_COUNT] = 0
        self.rows = self._buffers.acquire(np.int64, ROW_WIDTH, count)
        self._grow_carry_over(self.counter(CARRIED_BYTES) + self._expected_bytes())
        self._grown = -self.counter(CARRIED_BYTES)

    def end_window(self) -> Exchanges:
        """Return the exchanges of the window, and carry over the bytes still needed."""
        self.join_fragments()
        count = self.counter(ROW_COUNT)
        rows = self.rows[:, :count]
        request, response = (
            Frames(*rows[at : at + FRAME_WIDTH]) for at in (ROW_REQUEST, ROW_RESPONSE)
        )
        exchanges = Exchanges(
            data=self.data,
            carry_over=self.carry_over[: self.counter(CARRIED_BYTES)],
            connection=rows[ROW_CONNECTION],
            status=rows[ROW_STATUS].astype(np.int8),
            client=rows[ROW_CLIENT].astype(np.int8),
            token=rows[ROW_TOKEN].astype(np.bool_),
            answers_acks_0=(rows[ROW_FLAGS] & 1).astype(np.bool_),
            broken_off=(rows[ROW_FLAGS] >> 1).astype(np.int8),
            api_key=rows[ROW_API_KEY],
            api_version=rows[ROW_API_VERSION],
            correlation_id=rows[ROW_CORRELATION_ID],
            request=request,
            response=response,
        )
        self._carry_window()
        # The window is not kept alive by these tables.
        self.data, self.rows = _NO_BYTES, _NO_ROWS
        return exchanges

    def arrays(self, api_limits: Ints) -> CorrelatorArrays:
        """Return the current arrays of the kernel."""
        carried = self.carry_over, self.counters, self.connections, self.entries, self.rows
        rest = self.copies, self.emitters, api_limits, self.frame_head, self.suppressed
        return CorrelatorArrays._make((self.data, *carried, *rest))

    def lowest_barrier(self) -> int:
        """Return the lowest packet with bytes waiting in front of the kernel's connections."""
        if not self.counters[BARRIER_COUNT]:
            return NEVER
        rows = self.connections[np.isin(self.connections[:, MODE], (UNRECOGNISED, KAFKA))]
        return int(rows[:, [SIDES + BARRIER, SIDES + SIDE_WIDTH + BARRIER]].min(initial=NEVER))

    def set_barriers(self, number: int, barriers: tuple[int, int]) -> None:
        """Set the read limits of both sides of a connection."""
        row = self.connections[number]
        for at, barrier in zip((SIDES, SIDES + SIDE_WIDTH), barriers, strict=True):
            self.counters[BARRIER_COUNT] += int(row[at + BARRIER] == NEVER) - int(barrier == NEVER)
            row[at + BARRIER] = barrier

    def take_suppressed(self, number: int) -> SuppressedIds:
        """Return the suppressed ids of a connection, and free their row."""
        ring, count = self.connections[number, [SUPPRESSED_RING, SUPPRESSED_COUNT]].tolist()
        self.connections[number, [SUPPRESSED_RING, SUPPRESSED_COUNT]] = -1, 0
        if ring < 0:
            return SuppressedIds()
        ids = self.suppressed[ring].copy()
        self.suppressed[ring, 0] = self.counters[FREE_RING]
        self.counters[FREE_RING] = ring
        return SuppressedIds(ids, count)

    def put_suppressed(self, number: int, suppressed: SuppressedIds) -> None:
        """Give a connection its suppressed ids."""
        if not suppressed.count:
            return
        ring = self.counter(FREE_RING)
        if ring < 0:
            ring = self.counter(RINGS_USED)
            self.suppressed = with_capacity(self.suppressed, ring + 1)
            self.counters[RINGS_USED] = ring + 1
        else:
            self.counters[FREE_RING] = self.suppressed[ring, 0]
        self.suppressed[ring] = suppressed.ring
        self.connections[number, [SUPPRESSED_RING, SUPPRESSED_COUNT]] = ring, suppressed.count

    def counter(self, name: int) -> int:
        """Return one of the kernel's counters."""
        return int(self.counters[name])

    def carry(self, data: bytes | bytearray | Bytes) -> int:
        """Copy some bytes to the carry-over buffer; return their address."""
        at = self.counter(CARRIED_BYTES)
        end = at + len(data)
        self._grow_carry_over(end)
        self.carry_over[at:end] = np.frombuffer(data, np.uint8)
        self.counters[CARRIED_BYTES] = end
        return CARRY_OVER_BASE + at

    def bytes_at(self, address: int, length: int) -> bytes:
        """Return some bytes of the window or of the carry-over buffer."""
        if address < CARRY_OVER_BASE:
            return self.data[address : address + length].tobytes()
        return self.carry_over[
            address - CARRY_OVER_BASE : address - CARRY_OVER_BASE + length
        ].tobytes()

    def new_entry(self, *values: int) -> int:
        """Add an entry without a successor; return its number."""
        numbers = self.counters
        at = self.counter(FREE_ENTRY)
        if at < 0:
            at = self.counter(ENTRIES_USED)
            self.entries = with_capacity(self.entries, at + 1)
            numbers[ENTRIES_USED] = at + 1
        else:
            numbers[FREE_ENTRY] = self.entries[at, NEXT]
        numbers[ENTRIES_LIVE] += 1
        self.entries[at] = (-1, *values)
        return at

    def list_from(self, first: int) -> Iterator[tuple[int, list[int]]]:
        """Yield the entries from one on, with their numbers."""
        while first >= 0:
            entry = self.entries[first].tolist()
            yield first, entry
            first = entry[NEXT]

    def pop_list(self, first: int) -> Iterator[list[int]]:
        """Yield the entries from one on, and free them."""
        for number, entry in self.list_from(first):
            self.free_entry(number)
            yield entry

    def link_entries(self, nodes: Sequence[int]) -> tuple[int, int]:
        """Link entries to a list; return the first and the last, or -1."""
        if not nodes:
            return -1, -1
        self.entries[nodes[:-1], NEXT] = nodes[1:]
        self.entries[nodes[-1], NEXT] = -1
        return nodes[0], nodes[-1]

    def free_entry(self, at: int) -> None:
        """Return an entry to the list of free ones."""
        self.entries[at] = _UNUSED
        self.entries[at, NEXT] = self.counters[FREE_ENTRY]
        self.counters[FREE_ENTRY] = at
        self.counters[ENTRIES_LIVE] -= 1

    def append_row(self, values: Sequence[int]) -> None:
        """Append an exchange."""
        count = self.counter(ROW_COUNT)
        self.widen_rows(count + 1)
        self.rows[:, count] = values
        self.counters[ROW_COUNT] = count + 1

    def widen_rows(self, count: int) -> None:
        """Make room for the given number of exchanges."""
        capacity = self.rows.shape[1]
        if count > capacity:
            wider: Ints = self._buffers.acquire(np.int64, ROW_WIDTH, max(count, 2 * capacity))
            wider[:, :capacity] = self.rows
            self.rows = wider

    def join_fragments(self) -> None:
        """Copy the fragments of the frames that the kernel found complete."""
        count = self.counter(COPY_COUNT)
        if count:
            self._grow_carry_over(self.counter(CARRIED_BYTES))
            carry_over = self.carry_over
            copy_ranges(self.copies, count, self.data, carry_over, carry_over)
            self.counters[COPY_COUNT] = 0

    def _carry_window(self) -> None:
        """
        Carry over the bytes of the window that are still needed, as the window goes.

        The carry-over buffer is never overwritten, as emitted exchanges refer to it: if most of it
        is obsolete, the rest moves to a new one.
        """
        self._grown += self.counter(CARRIED_BYTES)
        nodes = self.entries[: self.counter(ENTRIES_USED)]
        start, length = nodes[:, START], nodes[:, LENGTH]
        source, begins = self.carry_over, self.counter(CARRIED_BYTES)
        anew = begins > 2 * int(length.sum()) + SPARE_BYTES
        moved = np.flatnonzero(length) if anew else np.flatnonzero(start < CARRY_OVER_BASE)
        begins = 0 if anew else begins
        ends = begins + np.cumsum(length[moved])
        end = int(ends[-1]) if len(moved) else begins
        if anew:
            self.carry_over = single_use(end + self._expected_bytes())
        self._grow_carry_over(end, begins)
        copies = np.stack([start[moved], ends - length[moved], length[moved]], axis=1)
        copies = np.ascontiguousarray(copies)
        copy_ranges(copies, len(moved), self.data, source, self.carry_over)
        nodes[moved, START] = CARRY_OVER_BASE + copies[:, 1]
        self.counters[CARRIED_BYTES] = end

    def _expected_bytes(self) -> int:
        """Expect a little more carried bytes than in the last window."""
        return self._grown + self._grown // 4

    def _grow_carry_over(self, count: int, used: int | None = None) -> None:
        """Make room for carried bytes; keep the used ones."""
        if count > len(self.carry_over):
            wider = single_use(max(count, 2 * len(self.carry_over)))
            used = min(len(self.carry_over), self.counter(CARRIED_BYTES)) if used is None else used
            wider[:used] = self.carry_over[:used]
            self.carry_over = wider
