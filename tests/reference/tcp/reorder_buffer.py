"""Out-of-order segments of one stream, waiting after a hole."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from dataclasses import dataclass
from heapq import heappop, heappush

from dissector.capture.columns import NEVER


@dataclass(slots=True)
class SegmentBytes:
    """
    Bytes of one segment that no earlier one carried.

    Attributes:
        seq: Their first sequence number, unwrapped beyond 2^32.
        end: The sequence number after them.
        captured: Number of captured bytes; the rest was cut off by the snapshot length.
        packet: The packet that carried them.
        time_ns: Its capture time.
        start: Their offset in the window, while `copied` is None.
        copied: The captured bytes, once their window is over.
        released: Whether they have been released.
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
        """Return the bytes between two sequence numbers inside these."""
        skip = seq - self.seq
        captured = min(max(self.captured - skip, 0), end - seq)
        copied = None if self.copied is None else self.copied[skip : skip + captured]
        return SegmentBytes(
            seq, end, captured, self.packet, self.time_ns, self.start + skip, copied
        )


class ReorderBuffer:
    """
    Bytes of segments without overlap, and the contiguous runs they form.

    A segment costs time logarithmic in the number of waiting segments: the first bytes captured
    win, so a segment only fills space between runs, and joins these.

    Attributes:
        bytes: Number of bytes that wait.
    """

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._covered_ns: list[int] = []
        self._heap: list[tuple[int, SegmentBytes]] = []
        self._arrivals: deque[SegmentBytes] = deque()
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def front(self) -> int:
        """The lowest sequence number that waits; the buffer must not be empty."""
        return self._starts[0]

    @property
    def front_covered_ns(self) -> int:
        """When all before `front` was acknowledged; `NEVER` if it was not."""
        return self._covered_ns[0]

    @property
    def lowest(self) -> SegmentBytes:
        """The bytes at `front`; the buffer must not be empty."""
        return self._heap[0][1]

    @property
    def oldest(self) -> SegmentBytes | None:
        """The bytes that have waited longest, until they are released."""
        while self._arrivals and self._arrivals[0].released:
            self._arrivals.popleft()
        return self._arrivals[0] if self._arrivals else None

    def arrivals(self) -> list[SegmentBytes]:
        """Return the bytes that wait, in the order of their arrival."""
        return [each for each in self._arrivals if not each.released]

    def covered_ns(self) -> dict[int, int]:
        """Return by first sequence number of each run when all before it was acknowledged."""
        return dict(zip(self._starts, self._covered_ns, strict=True))

    def cover(self, acked: int, time_ns: int) -> None:
        """Process an acknowledgement and its time."""
        i = bisect_right(self._starts, acked) - 1
        while i >= 0 and self._covered_ns[i] == NEVER:
            self._covered_ns[i] = time_ns
            i -= 1

    def uncover(self) -> None:
        """Drop all acknowledgements."""
        self._covered_ns = [NEVER] * len(self._starts)

    def add(self, segment: SegmentBytes, covered_ns: int = NEVER) -> list[SegmentBytes]:
        """
        Add the bytes of a segment.

        Args:
            segment: The segment.
            covered_ns: When all before it was acknowledged; `NEVER` if it was not.

        Returns:
            The parts that are new.
        """
        starts, ends = self._starts, self._ends
        first = bisect_left(ends, segment.seq)
        last = bisect_right(starts, segment.end)
        added: list[SegmentBytes] = []
        at = segment.seq
        for i in range(first, last):
            if at < starts[i]:
                added.append(segment.slice(at, starts[i]))
            at = max(at, ends[i])
        if at < segment.end:
            added.append(segment.slice(at, segment.end))
        run_start, run_end = segment.seq, segment.end
        if first < last:
            if starts[first] <= run_start:
                run_start, covered_ns = starts[first], self._covered_ns[first]
            run_end = max(run_end, ends[last - 1])
        starts[first:last] = [run_start]
        ends[first:last] = [run_end]
        self._covered_ns[first:last] = [covered_ns]
        for part in added:
            heappush(self._heap, (part.seq, part))
            self._arrivals.append(part)
            self.bytes += part.end - part.seq
        return added

    def pop_run(self) -> list[SegmentBytes]:
        """Remove the lowest run; return its bytes in order."""
        self._starts.pop(0)
        self._covered_ns.pop(0)
        end = self._ends.pop(0)
        run: list[SegmentBytes] = []
        while self._heap and self._heap[0][0] < end:
            segment = heappop(self._heap)[1]
            self.bytes -= segment.end - segment.seq
            run.append(segment)
        return run
