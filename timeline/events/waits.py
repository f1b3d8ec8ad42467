"""
Unanswered requests: how long they waited, and whether TCP acknowledged them.

Without an acknowledgement the network lost the request, or its broker is gone; an acknowledged one
has reached the broker's host.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dissector.engine.reading.reader import Reading
from dissector.engine.tables.exchange_table import UNANSWERED, Exchanges

SIDES = ("client", "broker")


class Wait(NamedTuple):
    """
    The wait of a request until the end of its connection, or of the capture.

    A connection that only one side has closed ends with its last packet.

    Attributes:
        until_ns: Its end.
        ended: How the connection ended: `fin`, `rst` or `reused`; empty if it did not.
        closer: Side that closed it first, `client` or `broker`; empty if unknown.
        is_acknowledged: Whether the broker's host acknowledged the request; None if the capture
            does not show it.
        resent: Number of its retransmissions, if it was not acknowledged.
        has_gap: Whether bytes of the connection are missing meanwhile: the answer may be in them.
    """

    until_ns: int
    ended: str = ""
    closer: str = ""
    is_acknowledged: bool | None = None
    resent: int = 0
    has_gap: bool = False


class Waits:
    """The unanswered requests of a window that waited to the end."""

    def __init__(
        self,
        reading: Reading,
        table: Exchanges,
        ending: Callable[[int, int], tuple[str, str, int]],
        has_gap: Callable[[int, int, int], bool],
    ) -> None:
        """
        Find the requests.

        Args:
            reading: The pass over the capture.
            table: The exchanges of the window.
            ending: Returns how, by whom and when a connection was closed, by its position and the
                side of the client.
            has_gap: Returns whether a connection has a gap in a time range.
        """
        self._reading, self._table, self._ending = reading, table, ending
        self._connections = reading.streams.connections
        self._has_gap = has_gap
        self._rows = wait_to_the_end(table)
        self._now_ns = 0
        if self._rows.any():
            self._now_ns = int(self._connections.columns().last_ns.max())

    def of(self, row: int) -> Wait | None:
        """Return the wait of a request; None if it was answered, or its answer was lost."""
        if not self._rows[row]:
            return None
        table, position = self._table, int(self._table.connection[row])
        client = int(table.client[row])
        ended, closer, end_ns = self._ending(position, client)
        states = self._connections.deliveries(np.array([position]))
        acked = int(states.acked[0, client])
        sent = int(states.sent[0, client])
        end = int(table.request.offset[row] + table.request.size[row])
        if self._reading.decryption.summary_of(position) is not None:
            end = sent  # the offset is that in the plaintext
        until_ns = end_ns if ended else self._now_ns
        has_fin = self._connections.fin_sequences(np.array([position]))[0] >= 0
        if not ended and has_fin.any():
            closer = SIDES[int(np.argmax(has_fin)) != client]
            until_ns = int(self._connections.columns(np.array([position])).last_ns[0])
        return Wait(
            until_ns,
            ended,
            closer,
            None if acked < 0 else acked >= end,
            int(states.resent[0, client]),
            self._has_gap(position, int(table.request.time_ns[row]), until_ns),
        )


def wait_to_the_end(table: Exchanges) -> NDArray[np.bool_]:
    """
    Return which unanswered requests of a window waited until the end of their connection.

    For the others a later request was answered, so their response was lost.
    """
    waits: NDArray[np.bool_] = table.status == UNANSWERED
    if waits.any():
        _, connection = np.unique(table.connection, return_inverse=True)
        others = np.flatnonzero(~waits)
        last_other = np.full(len(table), -1)
        np.maximum.at(last_other, connection[others], others)
        waits &= np.arange(len(table)) > last_other[connection]
    return waits
