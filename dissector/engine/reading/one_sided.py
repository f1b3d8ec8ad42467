"""
Connections with one direction in the capture: their messages have no counterparts.

A mirror port that copies one direction, or asymmetric routing. The acknowledgements of the side
that was captured prove that the other one sent: so its responses were not missing on the wire.
"""

from __future__ import annotations

import numpy as np

from dissector.capture.tcp.connection_table import ConnectionTable
from dissector.engine.tables.exchange_table import ONE_SIDED, ORPHAN, UNANSWERED, Exchanges


def mark_one_sided(exchanges: Exchanges, connections: ConnectionTable) -> Exchanges:
    """Give messages whose counterparts went in a direction without packets their status."""
    rows = np.flatnonzero((exchanges.status == UNANSWERED) | (exchanges.status == ORPHAN))
    if len(rows):
        missing = connections.missing_sides(exchanges.connection[rows])
        client = exchanges.client[rows]
        counterpart = np.where(exchanges.status[rows] == ORPHAN, client, 1 - client)
        exchanges.status[rows[missing == counterpart]] = ONE_SIDED
    return exchanges
