"""
Runs: the rows of a TLS connection that bring nothing but records of data, as most rows do.

They are decrypted in one loop for each side, and their plaintext becomes columns. What no run takes
(handshakes, gaps, ends, records that do not verify) is fed row by row.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import chain, pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dissector.capture.columns import DATA, IN_CARRY_OVER, NEVER, NO_BARRIER, Chunks
from dissector.engine.reading.plaintext_rows import PlaintextRows
from dissector.engine.tables.arrow import gather_bytes
from dissector.engine.tables.column_types import SliceBuffers, Slices
from dissector.engine.tables.exchange_table import NONE, Ints

if TYPE_CHECKING:
    from dissector.tls.held_bytes import Piece
    from dissector.tls.record_run import RecordRun
    from dissector.tls.tls_connection import TlsConnection

LEAST_ROWS = 8
"""Minimum number of rows of a side to try, after a run that ended early."""


class _Part(NamedTuple):
    """One side of a run, and the index of its first row in the order by streams."""

    side: int
    first: int
    run: RecordRun


class TlsRuns:
    """
    The runs among the TLS rows of a window.

    Rows have two orders: their *position* among the TLS rows, and their *index* in the order by
    streams, where the bytes of a stream are in one piece.

    Attributes:
        done: Of each position, whether a run has taken the row.
    """

    def __init__(self, chunks: Chunks, rows: Ints, emitted: dict[int, tuple[int, int]]) -> None:
        """
        Order the rows by streams.

        Args:
            chunks: The window.
            rows: The rows of TLS connections.
            emitted: The barriers of the newest row of each connection; runs update them.
        """
        self._chunks, self._rows, self._emitted = chunks, rows, emitted
        streams = 2 * chunks.connection[rows] + chunks.side[rows]
        self._order: Ints = np.argsort(streams, kind="stable")
        self._positions: list[int] = self._order.tolist()
        self._offset, content = _gathered(chunks, rows[self._order])
        self._offsets: list[int] = self._offset.tolist()
        self._content = content.data
        self._ranges = _ranges(streams[self._order])
        self._ends = _positions(chunks.connection[rows], chunks.kind[rows] != DATA)
        has_barrier = (chunks.barrier[rows] != NEVER).any(axis=1)
        self._with_barrier = set(chunks.connection[rows[has_barrier]].tolist())
        self._most_rows: dict[int, int] = {}
        self._parts: list[_Part] = []
        self._raised: list[Ints] = []
        self.done = bytearray(len(rows))

    def connections(self) -> list[int]:
        """Return the connections of the rows."""
        return sorted({each >> 1 for each in self._ranges})

    def left(self) -> Ints:
        """Return the positions of rows in no run."""
        return np.flatnonzero(np.frombuffer(self.done, np.uint8) == 0)

    def take(self, number: int, connection: TlsConnection, position: int) -> bool:
        """
        Take the run of a connection from a row of data on; return False if there is none.

        The run of both sides ends before the first row that either side can't take.
        """
        limit = self._limit(number, position)
        most = self._most_rows.get(number, len(self._rows))
        parts, is_early = list[_Part](), False
        for side in (0, 1):
            first, end = self._rows_between(2 * number + side, position, limit)
            if end - first > most:
                end = first + most
                limit = self._positions[end]
            if first == end:
                continue
            start = self._offsets[first]
            run = connection.streams[side].read_ahead(self._content[start : self._offsets[end]])
            if run is None:
                limit, is_early = self._positions[first], True
                continue
            if run.valid_bytes < len(run.data):
                last_valid = start - run.held + run.valid_bytes
                index = bisect_right(self._offsets, last_valid, first + 1, end) - 1
                limit, is_early = self._positions[index], True
            parts.append(_Part(side, first, run))
        count = sum(self._take_part(number, connection, part, limit) for part in parts)
        self._most_rows[number] = max(count if is_early else 2 * most, LEAST_ROWS)
        if count:
            self._raise_barriers(number, position, limit)
        return count > 0

    def add_to(self, made: PlaintextRows) -> None:
        """Add the plaintext of all runs."""
        runs = [each.run for each in self._parts]
        contents = list(chain.from_iterable(each.contents for each in runs))
        counts = [len(each.stops) for each in runs]
        starts = [self._offsets[each.first] - each.run.held for each in self._parts]
        stops = np.fromiter(chain.from_iterable(each.stops for each in runs), np.int64)
        stops += np.repeat(np.array(starts, np.int64), counts)
        lengths = np.fromiter(map(len, contents), np.int64, len(contents))
        # A record belongs to the row with its last byte.
        positions = self._order[np.searchsorted(self._offset[1:], stops)]
        made.add_records(positions, contents, lengths)
        raised = np.concatenate([np.zeros(0, np.int64), *self._raised])
        made.add_barriers(raised[~np.isin(raised, positions[lengths > 0])])

    def _limit(self, number: int, position: int) -> int:
        """Return the position of the next row of a connection that is not data."""
        ends = self._ends.get(number)
        at = 0 if ends is None else bisect_left(ends, position)
        return ends[at] if ends is not None and at < len(ends) else len(self._rows)

    def _rows_between(self, stream: int, position: int, limit: int) -> tuple[int, int]:
        """Return the first and last index of the rows of a stream between two positions."""
        first, end = self._ranges.get(stream, (0, 0))
        first = bisect_left(self._positions, position, first, end)
        return first, bisect_left(self._positions, limit, first, end)

    def _take_part(self, number: int, connection: TlsConnection, part: _Part, limit: int) -> int:
        """Take one side of a run, as far as its rows are below a position; return their number."""
        side, first, run = part
        _, end = self._rows_between(2 * number + side, self._positions[first], limit)
        if end == first:
            return 0
        start, stop = self._offsets[first], self._offsets[end]
        run.cut(run.held + stop - start)
        rest = max(start + run.used - run.held, start)
        connection.streams[side].take_run(run, self._pieces(rest, first, end))
        run.data = b""
        self._parts.append(part)
        np.frombuffer(self.done, np.uint8)[self._order[first:end]] = 1
        return end - first

    def _pieces(self, start: int, first: int, end: int) -> list[Piece]:
        """Return the bytes of rows from an offset on, with time and packet."""
        pieces = []
        for index in range(bisect_right(self._offsets, start, first + 1, end + 1) - 1, end):
            row = self._rows[self._positions[index]]
            data = self._content[max(start, self._offsets[index]) : self._offsets[index + 1]]
            if data:
                time_ns, packet = self._chunks.time_ns[row], self._chunks.packet[row]
                pieces.append((data.tobytes(), int(time_ns), int(packet)))
        return pieces

    def _raise_barriers(self, number: int, position: int, limit: int) -> None:
        """Collect the rows of a run with another barrier than the row before."""
        before = self._emitted.get(number, NO_BARRIER)
        if number not in self._with_barrier and before == NO_BARRIER:
            return
        sides = (self._rows_between(2 * number + side, position, limit) for side in (0, 1))
        positions = np.sort(np.concatenate([self._order[first:end] for first, end in sides]))
        own = self._chunks.barrier[self._rows[positions]]
        is_new = (own != np.concatenate(([before], own[:-1]))).any(axis=1)
        self._raised.append(positions[is_new])
        self._emitted[number] = int(own[-1, 0]), int(own[-1, 1])


def _gathered(chunks: Chunks, rows: Ints) -> tuple[Ints, np.ndarray]:
    """Return the bytes of rows in sequence, with the begin of each and the end of the last."""
    start = chunks.start[rows] + (chunks.origin[rows] == IN_CARRY_OVER) * len(chunks.data)
    start = np.where(chunks.kind[rows] == DATA, start, NONE)
    buffers = SliceBuffers(chunks.data, chunks.carry_over, np.zeros(0, np.uint8))
    return gather_bytes(Slices(start, chunks.length[rows], buffers))


def _ranges(values: Ints) -> dict[int, tuple[int, int]]:
    """Return the range of each value in a sorted column: first index, and end."""
    begins = np.flatnonzero(np.diff(values, prepend=-1))
    bounds = [*begins.tolist(), len(values)]
    return dict(zip(values[begins].tolist(), pairwise(bounds), strict=True))


def _positions(numbers: Ints, chosen: np.ndarray) -> dict[int, list[int]]:
    """Return the chosen positions of each connection."""
    positions: dict[int, list[int]] = {}
    for position in np.flatnonzero(chosen).tolist():
        positions.setdefault(int(numbers[position]), []).append(position)
    return positions
