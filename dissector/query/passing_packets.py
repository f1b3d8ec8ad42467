"""The packets of the exchanges that pass a filter, for results that name packets."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from dissector.engine.reading.capture import Window
from dissector.engine.tables.exchange_table import NONE, Exchanges
from dissector.query.selection import Selection


class PassingPackets:
    """
    Of each packet, whether it completed a message of an exchange that passes.

    Args:
        selection: The filter; without one all packets pass.
    """

    def __init__(self, selection: Selection) -> None:
        self._selection = selection
        self._passing = np.zeros(0, np.bool_)

    def add(self, window: Window) -> None:
        """Take the exchanges of a window that pass."""
        if self._selection.filter is not None:
            self.add_table(self._selection.exchange_table(window))

    def add_table(self, table: Exchanges) -> None:
        """Take exchanges, which pass."""
        for packets in (table.request.packet, table.response.packet):
            known = packets[packets != NONE] + 1
            if len(known) and int(known.max()) >= len(self._passing):
                grown = np.zeros(2 * int(known.max()) + 1, np.bool_)
                grown[: len(self._passing)] = self._passing
                self._passing = grown
            self._passing[known] = True

    def any(self, packets: Iterable[int]) -> bool:
        """Return whether any of some packets, numbered from 1, passes."""
        if self._selection.filter is None:
            return True
        return any(each < len(self._passing) and self._passing[each] for each in packets)
