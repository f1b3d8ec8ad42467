"""
Plain Produce and Fetch exchanges of a window, in columns: what trackers need of them.

They were answered without an error, and both messages can be relied on. Nearly all data traffic is
plain, and says nothing but its throttle time, and of a Fetch whether it begins a session.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dissector.engine.fields.message_fields import MessageFields
from dissector.engine.tables.exchange_table import ANSWERED, Exchanges, Ints

PRODUCE, FETCH = 0, 1

MIN_ROWS = 32
"""Exchanges of an API in a window from which on their columns are read: programs have a cost."""

_FIELDS = {
    PRODUCE: ((), ("throttle_time_ms",)),
    FETCH: (("session_epoch",), ("throttle_time_ms", "session_id")),
}
"""API -> fields of requests, of responses."""

_NO_EPOCH = -1


class PlainExchange(NamedTuple):
    """
    What a plain exchange says.

    Attributes:
        throttle_ms: Its throttle time; 0 without one.
        new_session: Of a Fetch that begins a session, its id; else 0.
    """

    throttle_ms: int
    new_session: int


class PlainData:
    """
    The plain exchanges of a window.

    Args:
        table: The exchanges.
        is_asked: Which of them trackers observe.
    """

    def __init__(self, table: Exchanges, is_asked: NDArray[np.bool_]) -> None:
        count = len(table)
        self._is_plain = np.zeros(count, np.bool_)
        self._throttle_ms, self._new_session = (np.zeros(count, np.int64) for _ in range(2))
        is_asked = is_asked & (table.status == ANSWERED) & ~table.token & ~table.answers_acks_0
        for key, paths in _FIELDS.items():
            rows = np.flatnonzero(is_asked & (table.api_key == key))
            if len(rows) >= MIN_ROWS:
                self._read(table, key, rows, *paths)

    def of(self, row: int) -> PlainExchange | None:
        """Return what a plain exchange says; None of another one."""
        if not self._is_plain[row]:
            return None
        return PlainExchange(int(self._throttle_ms[row]), int(self._new_session[row]))

    def _read(
        self, table: Exchanges, key: int, rows: Ints, asked: tuple[str, ...], given: tuple[str, ...]
    ) -> None:
        request = MessageFields(table, key, "request", asked, rows, without_nulls=True)
        response = MessageFields(table, key, "response", given, request.rows, without_nulls=True)
        both = response.rows
        self._is_plain[both] = True
        self._throttle_ms[both] = response.each("throttle_time_ms", 0)
        if "session_id" in given:
            epoch = request.each("session_epoch", _NO_EPOCH)
            is_new = np.isin(both, request.rows[epoch == 0])
            self._new_session[both] = np.where(is_new, response.each("session_id", 0), 0)
