"""The state tables of the correlator: grown by Python, read and written by the kernel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from dissector.capture.columns import NEVER, Bytes, Int32s
from dissector.capture.formats.window_buffers import BufferPool, single_use
from dissector.capture.hashing import SECRET
from dissector.engine.correlation import known_apis
from dissector.engine.correlation.connection_states import ConnectionStates
from dissector.engine.correlation.correlator_arrays import (
    CorrelatorState,
    ExchangeColumns,
    FrameColumns,
)
from dissector.engine.correlation.correlator_rows import (
    CARRY_OVER_BASE,
    ConnectionRow,
    Counts,
    Entry,
    Mode,
    PacketEnd,
    Piece,
    SideRow,
    StreamBreak,
)
from dissector.engine.correlation.entries import (
    SUPPRESSED_CELLS,
    copy_ranges,
    rehash,
    rehash_suppressed,
)
from dissector.engine.correlation.known_apis import MAX_PADDED_BYTES
from dissector.engine.correlation.resync_kernel import MAX_LED_BYTES
from dissector.engine.tables.column_types import with_capacity
from dissector.engine.tables.exchange_table import NONE, WAITING, Exchanges, Frames, Ints
from dissector.engine.tape.tape_arrays import new_rows
from dissector.kernel.named_rows import RowArray, dtype_of, row_of, rows_of

MAX_OPEN = 10_000
"""Requests in flight on one connection; beyond that the oldest is emitted as unanswered."""

MAX_OPEN_BYTES = 64 << 20
"""Bytes of the requests in flight on one connection."""

MIN_RETAINED_BYTES = 1 << 20
"""Bytes of a stream without a plausible frame that are retained at least, for a second search."""

MAX_DOUBTFUL_BYTES = 64 << 20
"""Bytes of ended connections that may wait until all brokers are known."""

SPARE_BYTES = 1 << 20
"""The carry-over buffer is compacted when it has more than this beyond twice the bytes in use."""

_HEAD_BYTES = 1024
"""Bytes of a fragmented frame, or of a damaged one, that are looked at in one place."""

_NO_BYTES: Bytes = np.zeros(0, np.uint8)


def new_connection(start_captured: bool, client: int | None = None) -> RowArray:
    """Return the row of a new connection; its client may be known."""
    made: RowArray = np.zeros((), dtype_of(ConnectionRow))
    row = row_of(made, ConnectionRow)
    row.mode, row.client = (Mode.UNRECOGNISED, -1) if client is None else (Mode.KAFKA, client)
    row.start_captured, row.highest_id = (True, -1) if start_captured else (False, NEVER)
    row.expects_first, row.awaited_id = start_captured, NEVER
    row.oldest_request = row.newest_request = row.first_token = row.last_token = -1
    row.suppressed_ring = row.first_delayed = row.last_delayed = row.doubtful_side = -1
    in_sync = start_captured and client is not None
    for side in (0, 1):
        stream = row.sides[side]
        stream.in_sync, stream.at_packet_start = in_sync, True
        stream.entered = 0 if in_sync else NONE
        stream.last_packet, stream.barrier = -1, NEVER
        stream.rtt_ns, stream.resent_ns = -1, NONE
        stream.first_fragment = stream.last_fragment = stream.held = stream.preface = -1
        stream.first_ready = stream.last_ready = stream.damaged = -1
    return made


class StateTables(ConnectionStates):
    """
    The tables with the rows of `correlator_rows`; those of connections are in `ConnectionStates`.

    Attributes:
        counts: Counters and limits of the kernel.
        entries: `Entry`: requests, ready frames, fragments and other kept bytes.
        ends: `PacketEnd`, of held bytes.
        exchanges: The exchanges of this window.
        emitters: Connections that emitted their first exchange.
        doubtful: Connections that ended in doubt.
        data: The bytes of this window.
        carry_over: Bytes that do not lie in the window, or not in one piece.
        suppressed: Rows of suppressed correlation ids.
        next_ring: Of an unused row of these, the next one.
        api_limits: What is known of APIs.
    """

    def __init__(self) -> None:
        """Make empty tables."""
        self._counts: RowArray = np.zeros((), dtype_of(Counts))
        self._piece: RowArray = np.zeros((), dtype_of(Piece))
        self._break: RowArray = np.zeros((), dtype_of(StreamBreak))
        super().__init__()
        self.entries: RowArray = np.zeros(64, dtype_of(Entry))
        self.ends: RowArray = np.zeros(64, dtype_of(PacketEnd))
        self._refer()
        self.counts.free_entry = self.counts.free_ring = -1
        self._buffers = BufferPool()
        self.exchanges = self._new_exchanges(0)
        self.emitters: Ints = np.zeros(64, np.int64)
        self.doubtful: Ints = np.zeros(64, np.int64)
        self.data: Bytes = _NO_BYTES
        self.carry_over: Bytes = _NO_BYTES
        self.suppressed: Int32s = np.zeros((1, SUPPRESSED_CELLS), np.int32)
        self.next_ring: Ints = np.zeros(1, np.int64)
        self._grown = 0

    def __getstate__(self) -> dict[str, Any]:
        carry_over = self.carry_over[: max(self.counts.carried_bytes, 1)]
        kept = {**super().__getstate__(), "carry_over": carry_over}
        for name in ("counts", "api_limits", "_program", *_SCRATCH, "_buckets"):
            del kept[name]
        return kept

    def __setstate__(self, kept: dict[str, Any]) -> None:
        super().__setstate__(kept)
        self._refer()
        self._rehash()
        rings = self.connections["suppressed_ring"][: len(self.numbers)]
        rehash_suppressed(np.flatnonzero(rings >= 0), self.state())

    def _refer(self) -> None:
        """Refer to the memory of the tables, and make what is not kept."""
        self.counts: Counts = row_of(self._counts, Counts)
        self.api_limits = known_apis.new_api_limits()
        self._program = known_apis.programs()
        self._frame_head: Bytes = np.zeros(_HEAD_BYTES, np.uint8)
        self._padded: Bytes = np.zeros(2 * MAX_PADDED_BYTES, np.uint8)
        self._seen: Bytes = np.zeros(MAX_LED_BYTES, np.uint8)
        self._buckets: Ints = np.full(64, -1, np.int64)

    def start_window(self, data: Bytes, count: int) -> None:
        """Begin a window with the given capacity for exchanges."""
        counts = self.counts
        self.data = data
        counts.window_bytes = len(data)
        counts.exchange_count = counts.next_chunk = counts.step = 0
        counts.max_open = MAX_OPEN
        counts.max_open_bytes = MAX_OPEN_BYTES
        counts.max_doubtful_bytes = MAX_DOUBTFUL_BYTES
        counts.min_retained_bytes = MIN_RETAINED_BYTES
        self.exchanges = self._new_exchanges(count)
        self._grow_carry_over(counts.carried_bytes + self._expected_bytes())
        self._grown = -counts.carried_bytes

    def end_window(self) -> Exchanges:
        """Return the exchanges of the window, and carry over the bytes still needed."""
        count = self.counts.exchange_count
        every: Any = self.exchanges
        *columns, request, response = every
        names = ExchangeColumns._fields
        connection = columns[0][:count]
        connection[:] = self.numbers[connection]
        exchanges = Exchanges(
            data=self.data,
            carry_over=self.carry_over[: self.counts.carried_bytes],
            request=Frames(*(column[:count] for column in request)),
            response=Frames(*(column[:count] for column in response)),
            **{name: column[:count] for name, column in zip(names, columns, strict=False)},
        )
        self._carry_window()
        self._compact_ends()
        # The window is not kept alive by these tables.
        self.data, self.exchanges = _NO_BYTES, self._new_exchanges(0)
        return exchanges

    def _new_exchanges(self, capacity: int) -> ExchangeColumns:
        """Return columns for exchanges, with arbitrary content."""
        numbers = iter(self._buffers.acquire(np.int64, 17, capacity))
        codes = iter(self._buffers.acquire(np.int8, 5, capacity))
        flags = [next(codes).view(np.bool_) for _ in range(2)]
        first = next(numbers), next(codes), next(codes), *flags, next(codes)
        header = [next(numbers) for _ in range(4)]
        request, response = (FrameColumns._make(next(numbers) for _ in range(6)) for _ in range(2))
        return ExchangeColumns._make((*first, *header, request, response))

    def state(self) -> CorrelatorState:
        """Return the current arrays of the kernel."""
        rows = self._counts, self._piece, self._break, self.connections, self.entries, self.ends
        lists = self._buckets, SECRET, self.exchanges, self.emitters, self.doubtful
        known = self.api_limits, self._program, new_rows(0)
        scratch = self._frame_head, self._padded, self._seen
        every: Any = self.data, self.carry_over, *rows, *lists, *known, *scratch
        return CorrelatorState._make((*every, self.suppressed, self.next_ring))

    def load_api(self) -> None:
        """Load the API that the kernel lacks."""
        known_apis.load_api(self.api_limits, self.counts.missing_api)

    def load_programs(self) -> None:
        """Load the programs that the kernel lacks."""
        known_apis.load_programs(self.api_limits, self.counts)
        self._program = known_apis.programs()

    def keep(self, rows: Ints) -> None:
        """Keep only these rows of connections, in order."""
        doubtful = self.doubtful[: self.counts.doubtful_count]
        numbers = self.numbers[doubtful]
        super().keep(rows)
        doubtful[:] = self.places[numbers]
        waiting = np.flatnonzero(self.connections["open_count"])
        owner = np.repeat(waiting, self.connections["open_count"][waiting])
        requests = np.array(list(self._requests(waiting.tolist())), np.int64)
        self.entries["connection"][requests] = owner
        self._rehash()

    def make_room(self, connection: int, length: int) -> None:
        """Make room for what the kernel may add for a chunk of a connection."""
        counts, row = self.counts, self.connection_rows[connection]
        # A delayed piece, which the chunk releases, may be longer than the chunk.
        delayed = 0 if self._piece["is_gap"] else int(self._piece["length"])
        added = max(length, delayed) // 8 + 64
        self._widen_exchanges(counts.exchange_count + row.open_count + row.ready_count + added)
        self.entries = with_capacity(self.entries, counts.entries_live + added)
        if len(self._buckets) < len(self.entries):
            self._rehash()
        self.ends = with_capacity(self.ends, counts.ends_used + counts.wanted_ends)
        self.emitters = with_capacity(self.emitters, counts.emitter_count + 1)
        self.doubtful = with_capacity(self.doubtful, counts.doubtful_count + 1)
        self.suppressed = with_capacity(self.suppressed, counts.rings_used + 1)
        self.next_ring = with_capacity(self.next_ring, counts.rings_used + 1)
        self._grow_carry_over(counts.carried_bytes + counts.wanted_bytes)

    def _rehash(self) -> None:
        """Make buckets for the requests in flight."""
        self._buckets = np.full(1 << max(len(self.entries) - 1, 1).bit_length(), -1, np.int64)
        rehash(np.flatnonzero(self.connections["open_count"]), self.state())

    def lowest_barrier(self) -> int:
        """Return the lowest packet with bytes waiting in front of the kernel's connections."""
        if not self.counts.barrier_count:
            return NEVER
        rows = self.connections[: len(self.numbers)]
        waiting = rows[np.isin(rows["mode"], (Mode.UNRECOGNISED, Mode.KAFKA))]
        return int(waiting["sides"]["barrier"].min(initial=NEVER))

    def waiting_packet(self, api_key: int | None = None) -> int:
        """
        Return the first packet with a frame that waits for a response or for its turn.

        With an API that of its requests only, and perhaps of responses.
        """
        entries = self.entries[: self.counts.entries_used]
        is_waiting = entries["is_waiting"] != 0
        if api_key is not None:
            is_waiting &= entries["api_key"] == api_key
        return int(entries["packet"].min(initial=NEVER, where=is_waiting))

    def carry(self, data: Bytes) -> int:
        """Copy some bytes to the carry-over buffer; return their offset there."""
        at = self.counts.carried_bytes
        self._grow_carry_over(at + len(data))
        self.carry_over[at : at + len(data)] = data
        self.counts.carried_bytes = at + len(data)
        return at

    def in_flight(self) -> Exchanges:
        """Return the requests in flight, between two windows."""
        numbers = np.flatnonzero(self.connections["open_count"])
        numbers = numbers[self.connections["mode"][numbers] == Mode.KAFKA]
        chosen = np.array(list(self._requests(numbers.tolist())), np.int64)
        rows = self.entries[chosen]
        count = len(rows)
        in_login = self.connections["in_login"][rows["connection"]] & rows["in_login"]
        token = (rows["is_token"] | in_login) != 0
        has_header = ~token & (rows["length"] >= 8)
        keys = (
            np.where(has_header, rows[name], NONE)
            for name in ("api_key", "api_version", "correlation_id")
        )
        api_key, api_version, correlation_id = keys
        names = "length", "size", "packet", "time_ns", "offset"
        nothing = [np.full(count, NONE, np.int64) for _ in range(6)]
        return Exchanges(
            data=_NO_BYTES,
            carry_over=self.carry_over[: self.counts.carried_bytes],
            connection=self.numbers[rows["connection"]],
            status=np.full(count, WAITING, np.int8),
            client=self.connections["client"][rows["connection"]].astype(np.int8),
            token=token,
            answers_acks_0=np.zeros(count, np.bool_),
            broken_off=np.zeros(count, np.int8),
            api_key=api_key,
            api_version=api_version,
            correlation_id=correlation_id,
            server_ns=np.full(count, NONE, np.int64),
            request=Frames(rows["start"] - CARRY_OVER_BASE, *(rows[name].copy() for name in names)),
            response=Frames(*nothing),
        )

    def _requests(self, numbers: list[int]) -> Iterator[int]:
        """Yield the entries of the requests in flight, oldest first."""
        entries = rows_of(self.entries, Entry)
        for number in numbers:
            entry = self.connection_rows[number].oldest_request
            while entry >= 0:
                yield entry
                entry = entries[entry].next

    def take_prefaces(self) -> Iterator[tuple[int, int, bytes]]:
        """Yield the prefaces of Kafka connections: row, side and bytes; they are dropped."""
        if not self.counts.preface_count:
            return
        entries, rows = rows_of(self.entries, Entry), self.connections
        is_kept = (rows["sides"]["preface"] >= 0) & (rows["mode"] == Mode.KAFKA)[:, None]
        for number, side in np.argwhere(is_kept).tolist():
            stream = self.connection_rows[number].sides[side]
            entry = entries[stream.preface]
            start = entry.start - CARRY_OVER_BASE
            yield number, side, self.carry_over[start : start + entry.length].tobytes()
            self._forget_preface(stream, entry)

    def _forget_preface(self, stream: SideRow, entry: Entry) -> None:
        counts = self.counts
        entry.start, entry.length, entry.next = CARRY_OVER_BASE, 0, counts.free_entry
        counts.free_entry, stream.preface = stream.preface, -1
        counts.entries_live -= 1
        counts.preface_count -= 1

    def _widen_exchanges(self, count: int) -> None:
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
        target = ends - length[moved]
        copy_ranges(start[moved], length[moved], target, self.data, source, self.carry_over)
        start[moved] = CARRY_OVER_BASE + target
        self.counts.carried_bytes = end

    def _compact_ends(self) -> None:
        """Move the ends of packets in use to the begin of their table."""
        if not self.counts.ends_used:
            return
        sides = self.connections["sides"]
        number, side = np.nonzero(sides["end_count"])
        count, first = sides["end_count"][number, side], sides["first_end"][number, side]
        target = np.cumsum(count) - count
        total = int(count.sum())
        sources = np.repeat(first - target, count) + np.arange(total)
        self.ends[:total] = self.ends[sources]
        sides["first_end"][number, side], sides["end_room"][number, side] = target, count
        self.counts.ends_used = total

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


_SCRATCH = "_frame_head", "_padded", "_seen"
"""Memory that kernels use between two calls only."""
