"""Segments of one stream that wait behind a hole."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from dataclasses import dataclass
from heapq import heappop, heappush


@dataclass(slots=True)
class SegmentBytes:
    """
    Bytes of one segment that no earlier one carried.

    Attributes:
        seq: Their first sequence number, counted on beyond 2^32.
        end: The sequence number behind them.
        captured: How many of them are present; the rest was cut off by the capture.
        packet: The packet that carried them.
        time_ns: When it was captured.
        start: Their offset in the window, as long as `copied` is None.
        copied: The present bytes, once their window is over.
        released: Whether they have been delivered.
    """

    seq: int
    end: int
    captured: int
    packet: int
    time_ns: int
    start: int
    copied: bytes | None = None
    released: bool = False

    def slice(self, seq: int, end: int) -> SegmentBytes:
        """Return the piece between two sequence numbers inside this one."""
        skip = seq - self.seq
        captured = min(max(self.captured - skip, 0), end - seq)
        kept = None if self.copied is None else self.copied[skip : skip + captured]
        return SegmentBytes(seq, end, captured, self.packet, self.time_ns, self.start + skip, kept)


class ReorderBuffer:
    """
    Pieces that don't overlap, and the runs that they make without a hole.

    Each segment costs time by the logarithm of how many wait: the first bytes captured win, so a
    segment only adds what lies between runs, and joins these.

    Attributes:
        bytes: How many bytes wait.
    """

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._pieces: list[tuple[int, SegmentBytes]] = []
        self._arrivals: deque[SegmentBytes] = deque()
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._pieces)

    @property
    def front(self) -> int:
        """The lowest sequence number that waits; there must be one."""
        return self._starts[0]

    @property
    def lowest(self) -> SegmentBytes:
        """The piece that waits at `front`; there must be one."""
        return self._pieces[0][1]

    @property
    def oldest(self) -> SegmentBytes | None:
        """The piece that waits longest, until it is released."""
        while self._arrivals and self._arrivals[0].released:
            self._arrivals.popleft()
        return self._arrivals[0] if self._arrivals else None

    def add(self, piece: SegmentBytes) -> list[SegmentBytes]:
        """Let a segment wait; return the pieces of it that are new."""
        starts, ends = self._starts, self._ends
        first = bisect_left(ends, piece.seq)
        last = bisect_right(starts, piece.end)
        added: list[SegmentBytes] = []
        at = piece.seq
        for i in range(first, last):
            if at < starts[i]:
                added.append(piece.slice(at, starts[i]))
            at = max(at, ends[i])
        if at < piece.end:
            added.append(piece.slice(at, piece.end))
        run_start, run_end = piece.seq, piece.end
        if first < last:
            run_start = min(run_start, starts[first])
            run_end = max(run_end, ends[last - 1])
        starts[first:last] = [run_start]
        ends[first:last] = [run_end]
        for each in added:
            heappush(self._pieces, (each.seq, each))
            self._arrivals.append(each)
            self.bytes += each.end - each.seq
        return added

    def pop_run(self) -> list[SegmentBytes]:
        """Take the pieces of the lowest run, in order."""
        self._starts.pop(0)
        end = self._ends.pop(0)
        taken: list[SegmentBytes] = []
        while self._pieces and self._pieces[0][0] < end:
            piece = heappop(self._pieces)[1]
            self.bytes -= piece.end - piece.seq
            taken.append(piece)
        return taken
