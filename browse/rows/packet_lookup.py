"""Search for the row of a packet."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from browse.rows.shown_rows import ShownRows
from dissector.engine.tables.exchange_table import NONE


def place_of_packet(
    shown: ShownRows, columns: Iterable[str], packet: int
) -> tuple[int, bool] | None:
    """
    Return the position of the row with a message completed by a packet, and True.

    Otherwise return the next row after the packet, or the last row, and False; None without rows.
    """
    rows = shown.numbers()
    best: tuple[int, int] | None = None
    for name in columns:
        packets = shown.parts.numbers(name)[rows]
        distance = np.where(packets < packet, np.int64(2**62), packets - packet)
        distance[packets == NONE] = 2**63 - 1
        if not len(distance):
            continue
        place = int(np.argmin(distance))
        if best is None or distance[place] < best[0]:
            best = int(distance[place]), place
    if best is None:
        return None
    if best[0] >= 2**62:
        return len(rows) - 1, False
    return best[1], best[0] == 0
