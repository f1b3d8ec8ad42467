"""Counters of bytes of a stream that are missing, retransmitted or late."""

from __future__ import annotations

from collections import deque

from dissector.capture.tcp.connections import Side
from dissector.capture.tcp.tcp_rows import GAPS_REMEMBERED


class LossCounters:
    """
    Counters of one stream's losses.

    It remembers the newest gaps, to distinguish late bytes, which fill one, from retransmitted
    bytes.
    """

    __slots__ = ("_unacked", "gaps", "side")

    def __init__(self, side: Side) -> None:
        self.side = side
        self.gaps: deque[tuple[int, int]] | None = None
        self._unacked: list[tuple[int, int]] = []

    def acked_gap_bytes(self, acked: int | None) -> int:
        """
        Return how many bytes of gaps are acknowledged.

        Those that were not when their gap was found count once all are, to the last gap.
        """
        unacked = sum(end - start for start, end in self._unacked)
        all_acked = acked is not None and unacked and acked >= self._unacked[-1][1]
        return self.side.gap_bytes - (0 if all_acked else unacked)

    def count_gap(self, start: int, end: int, acked: int | None) -> None:
        """Count bytes that are not in the capture, of which some are acknowledged."""
        if acked is not None and self._unacked and acked >= self._unacked[-1][1]:
            self._unacked.clear()
        lowest = start if acked is None else max(start, acked)
        if lowest < end:
            self._unacked.append((lowest, end))
        self.side.gaps += 1
        self.side.gap_bytes += end - start
        self._remember(start, end)

    def count_cut(self, start: int, end: int) -> None:
        """Count bytes that the capture cut off their packet."""
        self.side.cut_bytes += end - start
        self._remember(start, end)

    def count_retransmitted(self, number: int) -> bool:
        """Count the repeated bytes of a segment; return whether there are any."""
        if number > 0:
            self.side.retransmitted_segments += 1
            self.side.retransmitted_bytes += number
        return number > 0

    def count_old(self, start: int, end: int, first: int, next_seq: int) -> bool:
        """
        Count bytes before `next_seq` as late or retransmitted; the stream starts at `first`.

        Returns:
            Whether any were retransmitted.
        """
        if end - start == 1 and end == next_seq:
            return False  # a keep-alive
        end = min(end, next_seq)
        late = max(min(end, first) - start, 0)
        for gap_start, gap_end in self.gaps or ():
            late += max(min(end, gap_end) - max(start, gap_start), 0)
        self.side.late_bytes += late
        return self.count_retransmitted(end - start - late)

    def _remember(self, start: int, end: int) -> None:
        if self.gaps is None:
            self.gaps = deque(maxlen=GAPS_REMEMBERED)
        self.gaps.append((start, end))
