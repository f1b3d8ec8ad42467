"""Progress of reading: the newest time, and a lower bound for times of later exchanges."""

from __future__ import annotations

import time
from collections import deque

from dissector.engine.reading.capture import Window


class CaptureProgress:
    """
    Follows the progress through the windows of a capture.

    Attributes:
        now_ns: The newest time of an exchange.
    """

    def __init__(self) -> None:
        self.now_ns = 0
        self._seen_ns = 0
        self._marks: deque[tuple[int, int]] = deque()

    def advance(self, window: Window, packets: int) -> int:
        """
        Process a window; return a lower bound for times of exchanges in later windows.

        Args:
            window: The window.
            packets: Number of packets read so far.
        """
        table = window.exchanges
        if len(table):
            times = (int(side.time_ns.max()) for side in (table.request, table.response))
            self.now_ns = max(self.now_ns, *times)
            self._seen_ns = time.monotonic_ns()
        self._marks.append((packets, self.now_ns))
        while len(self._marks) > 1 and self._marks[1][0] <= window.low_watermark:
            self._marks.popleft()
        return self._marks[0][1] if self._marks[0][0] <= window.low_watermark else 0

    @property
    def live_ns(self) -> int:
        """The time in a live capture: it goes on where no exchange comes."""
        return self.now_ns + (time.monotonic_ns() - self._seen_ns if self._seen_ns else 0)
