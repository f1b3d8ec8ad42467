"""Bytes of a stream that are missing, come again or come too late, counted."""

from __future__ import annotations

from collections import deque

from dissector.capture.connections import Side

_GAPS_REMEMBERED = 64


class Tally:
    """
    Counts for one stream what is not simply its next bytes.

    The newest gaps are remembered, so that bytes that come for their places are told from bytes
    that come again.
    """

    __slots__ = ("_gaps", "_side")

    def __init__(self, side: Side) -> None:
        self._side = side
        self._gaps: deque[tuple[int, int]] | None = None

    def gap(self, start: int, end: int) -> None:
        """Count bytes that are not in the capture."""
        self._side.gaps += 1
        self._side.gap_bytes += end - start
        self._remember(start, end)

    def cut(self, start: int, end: int) -> None:
        """Count bytes that the capture cut off their packet."""
        self._side.cut_bytes += end - start
        self._remember(start, end)

    def again(self, number: int) -> None:
        """Count bytes of one segment that had come before; none may be."""
        if number > 0:
            self._side.retransmitted_segments += 1
            self._side.retransmitted_bytes += number

    def old(self, start: int, end: int, first: int, told: int) -> None:
        """Count those bytes of a segment that belong before `told`; the stream began at `first`."""
        if end - start == 1 and end == told:
            return  # a keep-alive
        end = min(end, told)
        late = max(min(end, first) - start, 0)
        for gap_start, gap_end in self._gaps or ():
            late += max(min(end, gap_end) - max(start, gap_start), 0)
        self._side.late_bytes += late
        self.again(end - start - late)

    def _remember(self, start: int, end: int) -> None:
        if self._gaps is None:
            self._gaps = deque(maxlen=_GAPS_REMEMBERED)
        self._gaps.append((start, end))
