"""Filters on fields of bodies: a thread reads the capture again."""

from __future__ import annotations

from collections import deque

import numpy as np

from browse.listing.capture_access import CaptureAccess, Pass
from dissector.engine.tables.exchange_table import Ints


class FilterRun(Pass):
    """
    A pass that finds the rows of matching exchanges.

    Attributes:
        found: Numbers of matching rows, window by window, until they are collected.
    """

    def __init__(self, access: CaptureAccess, text: str) -> None:
        """
        Prepare the run.

        Raises:
            FilterError: The filter does not parse.
        """
        super().__init__(access.reopen(text, False), access.total_bytes)
        self.found: deque[Ints] = deque()

    def search(self) -> None:
        """Read the capture, in a background thread."""
        self.run(self._search)

    def _search(self) -> None:
        begin = 0
        for window in self.windows():
            count = len(window.exchanges)
            if count:
                rows = self.source.selection.rows_that_pass(window)
                self.found.append(begin + (np.arange(count) if rows is None else rows))
            begin += count
            del window
