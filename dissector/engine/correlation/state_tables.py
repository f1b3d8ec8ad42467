"""The state tables of the correlator: grown by Python, read and written by the kernel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dissector.capture.columns import NEVER, Bytes, Int32s
from dissector.capture.formats.window_buffers import BufferPool, single_use
from dissector.engine.correlation.both_paths.correlation_limits import MAX_SUPPRESSED
from dissector.engine.correlation.both_paths.correlator_rows import (
    CARRY_OVER_BASE,
    KAFKA,
    UNRECOGNISED,
    ApiLimits,
    ConnectionRow,
    Copy,
    CorrelatorState,
    Counts,
    Entry,
    ExchangeColumns,
    FrameColumns,
)
from dissector.engine.correlation.fast_path.linked_lists import copy_ranges
from dissector.engine.correlation.objects.open_requests import SuppressedIds
from dissector.engine.tables.column_types import with_capacity
from dissector.engine.tables.exchange_table import Exchanges, Frames, Ints
from dissector.kernel.named_rows import RowArray, Rows, dtype_of, row_of, rows_of

SPARE_BYTES = 1 << 20
"""The carry-over buffer is compacted when it has more than this beyond twice the bytes in use."""

FIRST_BYTES = 1024
"""Bytes of a fragmented frame that are checked."""

_NO_BYTES: Bytes = np.zeros(0, np.uint8)


class StateTables:
    """
    The tables with the rows of `correlator_rows`.

    Attributes:
        counts: Counters and limits of the kernel.
        connections: `ConnectionRow`, by number.
        entries: `Entry`: requests, ready frames and fragments, in linked lists.
        exchanges: The exchanges of this window.
        copies: `Copy`: copies to the carry-over buffer that are to be made.
        emitters: Connections that emitted their first exchange.
        data: The bytes of this window.
        carry_over: Bytes that do not lie in the window, or not in one piece.
        frame_head: Scratch space for the first bytes of a fragmented frame.
        suppressed: Rows of suppressed correlation ids.
        next_ring: Of an unused row of these, the next one.
    """

    _connection_rows: tuple[RowArray, Rows[ConnectionRow]]
    _entry_rows: tuple[RowArray, Rows[Entry]]

    def __init__(self) -> None:
        self._counts: RowArray = np.zeros((), dtype_of(Counts))
        self.connections: RowArray = np.zeros(0, dtype_of(ConnectionRow))
        self.entries: RowArray = np.zeros(64, dtype_of(Entry))
        self._refer()
        self.counts.free_entry = self.counts.free_ring = -1
        self._buffers = BufferPool()
        self.exchanges = self._new_exchanges(0)
        self.copies: RowArray = np.zeros(64, dtype_of(Copy))
        self.emitters: Ints = np.zeros(64, np.int64)
        self.data: Bytes = _NO_BYTES
        self.carry_over: Bytes = _NO_BYTES
        self.frame_head: Bytes = np.zeros(FIRST_BYTES, np.uint8)
        self.suppressed: Int32s = np.zeros((1, MAX_SUPPRESSED), np.int32)
        self.next_ring: Ints = np.zeros(1, np.int64)
        self._grown = 0

    @property
    def connection_rows(self) -> Rows[ConnectionRow]:
        """The connections as single rows."""
        table, rows = self._connection_rows
        if table is not self.connections:
            rows = rows_of(self.connections, ConnectionRow)
            self._connection_rows = self.connections, rows
        return rows

    @property
    def entry_rows(self) -> Rows[Entry]:
        """The entries as single rows."""
        table, rows = self._entry_rows
        if table is not self.entries:
            rows = rows_of(self.entries, Entry)
            self._entry_rows = self.entries, rows
        return rows

    def __getstate__(self) -> dict[str, Any]:
        kept = {**self.__dict__, "carry_over": self.carry_over[: max(self.counts.carried_bytes, 1)]}
        for name in ("counts", "_connection_rows", "_entry_rows"):
            del kept[name]
        return kept

    def __setstate__(self, kept: dict[str, Any]) -> None:
        self.__dict__.update(kept)
        self._refer()

    def _refer(self) -> None:
        """Refer to the memory of the tables, for single rows."""
        self.counts: Counts = row_of(self._counts, Counts)
        self._connection_rows = self.connections, rows_of(self.connections, ConnectionRow)
        self._entry_rows = self.entries, rows_of(self.entries, Entry)

    def start_window(self, data: Bytes, count: int) -> None:
        """Begin a window with the given capacity for exchanges."""
        counts = self.counts
        self.data = data
        counts.window_bytes = len(data)
        counts.exchange_count = counts.next_chunk = counts.framed_bytes = 0
        self.exchanges = self._new_exchanges(count)
        self._grow_carry_over(counts.carried_bytes + self._expected_bytes())
        self._grown = -counts.carried_bytes

    def end_window(self) -> Exchanges:
        """Return the exchanges of the window, and carry over the bytes still needed."""
        self.join_fragments()
        count = self.counts.exchange_count
        every: Any = self.exchanges
        *columns, request, response = every
        names = ExchangeColumns._fields
        exchanges = Exchanges(
            data=self.data,
            carry_over=self.carry_over[: self.counts.carried_bytes],
            request=Frames(*(column[:count] for column in request)),
            response=Frames(*(column[:count] for column in response)),
            **{name: column[:count] for name, column in zip(names, columns, strict=False)},
        )
        self._carry_window()
        # The window is not kept alive by these tables.
        self.data, self.exchanges = _NO_BYTES, self._new_exchanges(0)
        return exchanges

    def _new_exchanges(self, capacity: int) -> ExchangeColumns:
        """Return columns for exchanges, with arbitrary content."""
        numbers = iter(self._buffers.acquire(np.int64, 16, capacity))
        codes = iter(self._buffers.acquire(np.int8, 5, capacity))
        flags = [next(codes).view(np.bool_) for _ in range(2)]
        first = next(numbers), next(codes), next(codes), *flags, next(codes)
        header = [next(numbers) for _ in range(3)]
        request, response = (FrameColumns._make(next(numbers) for _ in range(6)) for _ in range(2))
        return ExchangeColumns._make((*first, *header, request, response))

    def state(self, api_limits: ApiLimits) -> CorrelatorState:
        """Return the current arrays of the kernel."""
        carried = self.carry_over, self._counts, self.connections, self.entries, self.exchanges
        rest = self.copies, self.emitters, api_limits, self.frame_head, self.suppressed
        return CorrelatorState._make((self.data, *carried, *rest, self.next_ring))

    def lowest_barrier(self) -> int:
        """Return the lowest packet with bytes waiting in front of the kernel's connections."""
        if not self.counts.barrier_count:
            return NEVER
        rows = self.connections[np.isin(self.connections["mode"], (UNRECOGNISED, KAFKA))]
        return int(rows["sides"]["barrier"].min(initial=NEVER))

    def set_barriers(self, number: int, barriers: tuple[int, int]) -> None:
        """Set the read limits of both sides of a connection."""
        sides = self.connection_rows[number].sides
        for side, barrier in enumerate(barriers):
            before = sides[side].barrier
            self.counts.barrier_count += int(before == NEVER) - int(barrier == NEVER)
            sides[side].barrier = barrier

    def take_suppressed(self, number: int) -> SuppressedIds:
        """Return the suppressed ids of a connection, and free their row."""
        row, counts = self.connection_rows[number], self.counts
        ring, count = row.suppressed_ring, row.suppressed_count
        row.suppressed_ring, row.suppressed_count = -1, 0
        if ring < 0:
            return SuppressedIds()
        self.next_ring[ring] = counts.free_ring
        counts.free_ring = ring
        return SuppressedIds(self.suppressed[ring].copy(), count)

    def put_suppressed(self, number: int, suppressed: SuppressedIds) -> None:
        """Give a connection its suppressed ids."""
        if not suppressed.count:
            return
        row, counts = self.connection_rows[number], self.counts
        ring = counts.free_ring
        if ring < 0:
            ring = counts.rings_used
            self.widen_rings(ring + 1)
            counts.rings_used = ring + 1
        else:
            counts.free_ring = int(self.next_ring[ring])
        self.suppressed[ring] = suppressed.ring
        row.suppressed_ring, row.suppressed_count = ring, suppressed.count

    def widen_rings(self, count: int) -> None:
        """Make room for rows of suppressed ids."""
        self.suppressed = with_capacity(self.suppressed, count)
        self.next_ring = with_capacity(self.next_ring, count)

    def carry(self, data: bytes | bytearray | Bytes) -> int:
        """Copy some bytes to the carry-over buffer; return their address."""
        at = self.counts.carried_bytes
        end = at + len(data)
        self._grow_carry_over(end)
        self.carry_over[at:end] = np.frombuffer(data, np.uint8)
        self.counts.carried_bytes = end
        return CARRY_OVER_BASE + at

    def bytes_at(self, address: int, length: int) -> bytes:
        """Return some bytes of the window or of the carry-over buffer."""
        if address < CARRY_OVER_BASE:
            return self.data[address : address + length].tobytes()
        return self.carry_over[
            address - CARRY_OVER_BASE : address - CARRY_OVER_BASE + length
        ].tobytes()

    def new_entry(self) -> int:
        """Return the number of an entry for use, without a successor."""
        counts = self.counts
        number = counts.free_entry
        if number < 0:
            number = counts.entries_used
            self.entries = with_capacity(self.entries, number + 1)
            counts.entries_used = number + 1
        else:
            counts.free_entry = self.entry_rows[number].next
        counts.entries_live += 1
        self.entry_rows[number].next = -1
        return number

    def list_from(self, first: int) -> Iterator[tuple[int, Entry]]:
        """Yield the entries from one on, with their numbers."""
        while first >= 0:
            entry = self.entry_rows[first]
            after = entry.next
            yield first, entry
            first = after

    def free_list(self, first: int) -> None:
        """Free the entries from one on."""
        for number, _ in self.list_from(first):
            self.free_entry(number)

    def link_entries(self, nodes: Sequence[int]) -> tuple[int, int]:
        """Link entries to a list; return the first and the last, or -1."""
        if not nodes:
            return -1, -1
        self.entries["next"][nodes] = [*nodes[1:], -1]
        return nodes[0], nodes[-1]

    def free_entry(self, number: int) -> None:
        """Return an entry to the list of unused ones."""
        entry, counts = self.entry_rows[number], self.counts
        entry.is_frame, entry.start, entry.length = False, CARRY_OVER_BASE, 0
        entry.next = counts.free_entry
        counts.free_entry = number
        counts.entries_live -= 1

    def append_exchange(
        self, values: Sequence[int], request: Sequence[int], response: Sequence[int]
    ) -> None:
        """Append an exchange: its columns before those of its frames, and these."""
        row = self.counts.exchange_count
        self.widen_exchanges(row + 1)
        *columns, requests, responses = self.exchanges
        for each, given in ((columns, values), (requests, request), (responses, response)):
            for column, value in zip(each, given, strict=True):
                column[row] = value
        self.counts.exchange_count = row + 1

    def widen_exchanges(self, count: int) -> None:
        """Make room for the given number of exchanges."""
        capacity = len(self.exchanges.connection)
        if count > capacity:
            narrow, wider = self.exchanges, self._new_exchanges(max(count, 2 * capacity))
            pairs = [*zip(narrow[:-2], wider[:-2], strict=True)]
            pairs += zip(narrow.request, wider.request, strict=True)
            pairs += zip(narrow.response, wider.response, strict=True)
            for column, wide in pairs:
                wide[:capacity] = column
            self.exchanges = wider

    def waiting_packet(self) -> int:
        """Return the first packet with a frame that waits for a response or for its turn."""
        entries = self.entries[: self.counts.entries_used]
        return int(entries["packet"].min(initial=NEVER, where=entries["is_frame"] != 0))

    def join_fragments(self) -> None:
        """Copy the fragments of the frames that the kernel found complete."""
        count = self.counts.copy_count
        if count:
            self._grow_carry_over(self.counts.carried_bytes)
            carry_over = self.carry_over
            copy_ranges(self.copies, count, self.data, carry_over, carry_over)
            self.counts.copy_count = 0

    def _carry_window(self) -> None:
        """
        Carry over the bytes of the window that are still needed, as the window goes.

        The carry-over buffer is never overwritten, as emitted exchanges refer to it: if most of it
        is obsolete, the rest moves to a new one.
        """
        self._grown += self.counts.carried_bytes
        entries = self.entries[: self.counts.entries_used]
        start, length = entries["start"], entries["length"]
        source, begins = self.carry_over, self.counts.carried_bytes
        anew = begins > 2 * int(length.sum()) + SPARE_BYTES
        moved = np.flatnonzero(length) if anew else np.flatnonzero(start < CARRY_OVER_BASE)
        begins = 0 if anew else begins
        ends = begins + np.cumsum(length[moved])
        end = int(ends[-1]) if len(moved) else begins
        if anew:
            self.carry_over = single_use(end + self._expected_bytes())
        self._grow_carry_over(end, begins)
        copies: RowArray = np.zeros(len(moved), dtype_of(Copy))
        copies["source"], copies["length"] = start[moved], length[moved]
        copies["target"] = ends - length[moved]
        copy_ranges(copies, len(moved), self.data, source, self.carry_over)
        start[moved] = CARRY_OVER_BASE + copies["target"]
        self.counts.carried_bytes = end

    def _expected_bytes(self) -> int:
        """Expect a little more carried bytes than in the last window."""
        return self._grown + self._grown // 4

    def _grow_carry_over(self, count: int, used: int | None = None) -> None:
        """Make room for carried bytes; keep the used ones."""
        if count > len(self.carry_over):
            wider = single_use(max(count, 2 * len(self.carry_over)))
            used = min(len(self.carry_over), self.counts.carried_bytes) if used is None else used
            wider[:used] = self.carry_over[:used]
            self.carry_over = wider
