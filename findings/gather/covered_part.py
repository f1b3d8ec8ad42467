"""The part of a capture covered by events and conformance."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dissector.engine.reading.capture import Window
from dissector.engine.tables.exchange_table import NONE


@dataclass(slots=True)
class Part:
    """
    The first exchanges of a capture.

    Attributes:
        most: Limit of exchanges; None for all.
        count: Number of exchanges in the part.
        until_ns: End of the last exchange; 0 without any.
        is_cut: Whether the capture has further exchanges.
    """

    most: int | None
    count: int = 0
    until_ns: int = 0
    is_cut: bool = False

    def take(self, window: Window, *, whole: bool) -> Window | None:
        """
        Return the exchanges of the next window within the part; None without any.

        Args:
            window: The window.
            whole: Keep the last window whole, which may exceed the limit.
        """
        count = len(window.exchanges)
        rest = count if self.most is None else self.most - self.count
        if count and rest <= 0:
            self.is_cut = True
            return None
        if count > rest and not whole:
            self.is_cut = True
            rows = np.arange(rest)
            window = replace(window, exchanges=window.exchanges.rows(rows), summary=None)
        if count:
            table = window.exchanges
            self.count += len(table)
            ends = np.maximum(table.request.time_ns, table.response.time_ns)
            self.until_ns = max(self.until_ns, int(ends.max(initial=NONE)))
        return window
